//! From the broker into the durable store: a delivery becomes a task, and is acknowledged after the task is
//! committed (ACK-AFTER).

pub(crate) mod sink;

use std::{fmt, str::FromStr, sync::Arc};

use tokio::time::sleep;
use windlass::{Name, NewTask, Outcome, Payload};

use self::sink::is_the_messages_fault;
use crate::{Consumer, Delivery, Error, Sink, backoff::backoff};

/// The source of the name of a job or a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameFrom {
    /// The value of this header; a delivery without the header has no such name.
    Header(String),
    /// The routing key.
    RoutingKey,
    /// Always this name.
    Fixed(String),
}

impl NameFrom {
    fn read(&self, delivery: &Delivery) -> Option<String> {
        match self {
            Self::Header(name) => delivery.header(name),
            Self::RoutingKey => Some(delivery.routing_key().to_owned()).filter(|key| !key.is_empty()),
            Self::Fixed(name) => Some(name.clone()),
        }
    }
}

impl FromStr for NameFrom {
    type Err = Error;

    /// `header:NAME`, `routing_key` or `name:TEXT`.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_owned())),
            Some(("name", name)) if !name.is_empty() => Ok(Self::Fixed(name.to_owned())),
            None if text == "routing_key" => Ok(Self::RoutingKey),
            _ => {
                let reason = format!("{text:?} is none of header:NAME, routing_key and name:TEXT");
                Err(Error::Declaration(reason))
            }
        }
    }
}

/// How deliveries become tasks.
///
/// The message id is the idempotency key, so a message that is delivered twice becomes one task. A delivery
/// without an id has no key, and becomes a second task if it is delivered again.
#[derive(Clone)]
#[must_use = "hand it to Consumer::into_store"]
pub struct Bridge {
    sink: Arc<dyn Sink>,
    kind: Name,
    queue: Option<Name>,
    job: Option<NameFrom>,
    workflow: Option<NameFrom>,
}

impl Bridge {
    /// Deliveries become tasks of this kind on the default queue. The sink is a [`Client`](windlass::Client),
    /// or enqueues elsewhere.
    ///
    /// # Errors
    /// [`Error::Declaration`] if the kind is not a valid name.
    pub fn new(sink: impl Sink, kind: &str) -> Result<Self, Error> {
        let (sink, kind) = (Arc::new(sink), name("kind", kind)?);
        Ok(Self { sink, kind, queue: None, job: None, workflow: None })
    }

    /// The tasks wait in this queue of the store.
    ///
    /// # Errors
    /// [`Error::Declaration`] if it is not a valid name.
    pub fn task_queue(mut self, queue: &str) -> Result<Self, Error> {
        self.queue = Some(name("queue", queue)?);
        Ok(self)
    }

    /// The tasks belong to the job with this name.
    pub fn job(mut self, from: NameFrom) -> Self {
        self.job = Some(from);
        self
    }

    /// The tasks are appended to the workflow with this name.
    pub fn workflow(mut self, from: NameFrom) -> Self {
        self.workflow = Some(from);
        self
    }

    /// The task for a delivery.
    fn task(&self, delivery: &Delivery) -> windlass::Result<NewTask> {
        let body = delivery.body().to_vec();
        // JSON if the content type says so, or if there is none and the body is valid JSON.
        let payload = match delivery.content_type() {
            Some(other) if !other.contains("json") => Payload::bytes(body),
            Some(_) => Payload::json_text(body)?,
            None => Payload::json_text(body.clone()).unwrap_or_else(|_| Payload::bytes(body)),
        };
        let named = |what: &str, from: &Option<NameFrom>| {
            let text = from.as_ref().and_then(|from| from.read(delivery));
            text.map(|text| Name::new(what, text)).transpose()
        };
        let mut task = NewTask::new(self.kind.as_str(), payload)?;
        if let Some(queue) = &self.queue {
            task.queue = queue.clone();
        }
        task.job = named("job", &self.job)?;
        task.workflow = named("workflow", &self.workflow)?;
        task.trace = delivery.trace();
        Ok(task)
    }

    /// Enqueues until the store has the task. While the store is down, the consumer holds the delivery and
    /// its place in the prefetch, so messages pile up only in the queue of the broker.
    async fn enqueue(&self, delivery: &Delivery) -> Outcome {
        let task = match self.task(delivery) {
            Ok(task) => task,
            Err(error) => return Outcome::Dead(error.to_string()),
        };
        let mut backoff = backoff();
        loop {
            match self.sink.enqueue(task.clone(), delivery.message_id()).await {
                Ok(()) => return Outcome::Done(None),
                Err(error) if is_the_messages_fault(&error) => return Outcome::Dead(error.to_string()),
                // After a lost answer the task is sent again under the same key. Without a key it may become
                // two tasks, as after a redelivery by the broker.
                Err(error) => tracing::warn!(%error, "a delivery waits for the store"),
            }
            tokio::select! {
                () = sleep(backoff.next()) => {}
                _ = delivery.cancellation().cancelled() => return Outcome::Release,
            }
        }
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("kind", &self.kind).finish_non_exhaustive()
    }
}

fn name(what: &str, text: &str) -> Result<Name, Error> {
    Name::new(what, text).map_err(|error| Error::Declaration(error.to_string()))
}

impl Consumer {
    /// Deliveries of a queue become tasks in the store, and are acknowledged after the tasks are committed.
    pub fn into_store(queue: impl Into<String>, bridge: Bridge) -> Self {
        let bridge = Arc::new(bridge);
        Self::raw(queue, move |delivery: Delivery| {
            let bridge = Arc::clone(&bridge);
            async move { bridge.enqueue(&delivery).await }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_a_header_the_routing_key_or_the_file() {
        assert_eq!("header:tenant".parse(), Ok(NameFrom::Header("tenant".to_owned())));
        assert_eq!("routing_key".parse(), Ok(NameFrom::RoutingKey));
        assert_eq!("name:a:b".parse(), Ok(NameFrom::Fixed("a:b".to_owned())));
        for wrong in ["", "header:", "name:", "tenant", "key:x"] {
            assert!(wrong.parse::<NameFrom>().is_err(), "{wrong}");
        }
    }
}
