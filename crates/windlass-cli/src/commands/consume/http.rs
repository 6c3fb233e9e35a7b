//! A consumer that posts deliveries to an HTTP target, under the same rules as tasks of kind `http`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use windlass::{Context, Outcome, Payload, handler::RawHandler as _};
use windlass_amqp::{Consumer, Delivery};
use windlass_core::{Claimed, Lane, LaneId, Name, TaskId, Timestamp, WorkerId, trace::TRACESTATE};
use windlass_kinds::{Http, check_http_payload};

use super::plan::wrong;
use crate::{config::amqp, failure::Failure};

/// The payload of an `http` task.
#[derive(Serialize)]
struct Request<'a> {
    url: &'a str,
    method: &'static str,
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

/// Where deliveries are posted to.
pub struct Target {
    http: Arc<Http>,
    queue: String,
    url: String,
    headers: Map<String, Value>,
    lane: Arc<Lane>,
}

impl Target {
    /// Checks everything that can be checked without a delivery.
    pub fn new(http: Arc<Http>, entry: &amqp::Consumer) -> Result<Self, Failure> {
        let url = entry.url.clone().ok_or_else(|| wrong(entry, "goes to http and names no url"))?;
        let others = [&entry.kind, &entry.task_queue, &entry.job, &entry.workflow];
        if others.iter().any(|other| other.is_some()) {
            return Err(wrong(
                entry,
                "goes to http: kind, task_queue, job and workflow are for to = \"store\"",
            ));
        }
        let headers: Map<String, Value> = entry.headers.clone().into_iter().collect();
        check_http_payload(&json!({"url": url, "headers": headers}))
            .map_err(|reason| wrong(entry, &format!("cannot be sent: {reason}")))?;
        let name = |text: &str| Name::new("kind", text).map_err(|error| wrong(entry, &error.to_string()));
        let lane = Arc::new(Lane { id: LaneId(0), queue: name("amqp")?, kind: name("http")? });
        Ok(Self { http, queue: entry.queue.clone(), url, headers, lane })
    }

    /// The consumer that posts.
    pub fn consumer(self) -> Consumer {
        let (queue, target) = (self.queue.clone(), Arc::new(self));
        Consumer::raw(queue, move |delivery: Delivery| {
            let target = Arc::clone(&target);
            async move { target.post(&delivery).await }
        })
    }

    async fn post(&self, delivery: &Delivery) -> Outcome {
        match self.payload(delivery) {
            Ok(payload) => self.http.call(Context::detached(self.attempt(payload, delivery))).await,
            Err(reason) => Outcome::Dead(reason),
        }
    }

    /// The request as the payload of an `http` task.
    fn payload(&self, delivery: &Delivery) -> Result<Payload, String> {
        let mut headers = self.headers.clone();
        if let Some(id) = delivery.message_id() {
            // A message that is delivered again must be the same request.
            headers.entry("idempotency-key").or_insert_with(|| id.into());
        }
        if let Some(state) = delivery.trace_state() {
            headers.entry(TRACESTATE).or_insert_with(|| state.into());
        }
        let text = std::str::from_utf8(delivery.body()).map_err(|_| "the body is not UTF-8".to_owned())?;
        // Keep the body as published: parsing numbers into 64 bits would change large ones.
        let json = serde_json::from_str::<&RawValue>(text).ok();
        let body = if json.is_none() { Some(text) } else { None };
        let request = Request { url: &self.url, method: "POST", headers, json, body };
        Payload::json(&request).map_err(|error| error.to_string())
    }

    /// The handler of kind `http` takes an attempt of a task. This attempt belongs to no task in a store.
    fn attempt(&self, payload: Payload, delivery: &Delivery) -> Claimed {
        Claimed {
            id: TaskId::from_raw(0),
            lease: 1,
            attempt: 1,
            max_attempts: 1,
            crashes: 0,
            worker: WorkerId(0),
            claim_no: 0,
            lane: Arc::clone(&self.lane),
            priority: 0,
            payload,
            job: None,
            workflow: None,
            timeout: None,
            retry: None,
            claimed_at: Timestamp::from_ms(0),
            // The target's span becomes a child of this handler's span.
            trace: delivery.trace(),
        }
    }
}
