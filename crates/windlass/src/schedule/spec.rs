//! What a schedule enqueues and when, and the text of it in a store.

use std::{fmt, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_core::{
    Encoding, Error, Name, NewTask, OnFailure, Payload, Result, RetryPolicy, Rules, Start, Timestamp,
    task::{DEFAULT_QUEUE, Key},
};

use super::{cron::Cron, zone::Zone};
use crate::task::Task;

/// The newest version of the text that this program writes and reads. Version 2 has `@every` and `L` in its
/// expression. A text without them is written as version 1, so that programs of the release before still fire
/// it.
const VERSION: u32 = 2;

/// What to do about ticks that were not fired in time, because every worker was down or the schedule was not
/// checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// One task makes up for all missed ticks.
    #[default]
    Once,
    /// A tick that is more than a minute late is dropped.
    Skip,
}

impl Missed {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Once, Self::Skip];

    /// The policy's name in settings and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Skip => "skip",
        }
    }
}

/// A recurring task: what it enqueues at each tick, and when the ticks are.
#[derive(Clone, PartialEq, Eq)]
pub struct Spec {
    /// When, in local time.
    pub cron: Cron,
    /// The zone of that local time.
    pub zone: Zone,
    /// What to do about missed ticks.
    pub missed: Missed,
    /// The task to enqueue. It must not have a start or a key: each tick sets them.
    pub task: NewTask,
}

impl Spec {
    /// A typed task at the times of a cron expression, in UTC.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the field of the expression that is wrong and what is allowed there.
    pub fn new<T: Task>(cron: &str, task: &T) -> Result<Self> {
        Self::raw(cron, task.new_task()?)
    }

    /// The same for a task without a type.
    ///
    /// # Errors
    /// As [`Spec::new`].
    pub fn raw(cron: &str, task: NewTask) -> Result<Self> {
        Ok(Self { cron: cron.parse()?, zone: Zone::utc(), missed: Missed::default(), task })
    }

    /// The same in another zone, by its IANA name.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such zone.
    pub fn tz(mut self, name: &str) -> Result<Self> {
        self.zone = name.parse()?;
        Ok(self)
    }

    /// The same with another policy for missed ticks.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// The first tick after a time.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.next_after(after, &self.zone)
    }

    /// The task of a tick. Its key makes it unique, in any process and after any number of fires.
    pub(super) fn task_of(&self, name: &Name, tick: Timestamp) -> NewTask {
        let text = format!("schedule:{name}:{}", tick.as_ms());
        // The schedule may have changed since a process with an older copy fired the tick.
        NewTask { key: Some(Key { text, ignore_conflict: true }), ..self.task.clone() }
    }

    /// Checks rules that the types cannot express.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of the field.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        if self.task.start != Start::Now {
            return Err(Error::invalid("the task of a schedule starts at its tick; leave its start out"));
        }
        if self.task.key.is_some() {
            return Err(Error::invalid("the task of a schedule gets a key for each tick; leave its key out"));
        }
        self.task.check(rules)
    }

    /// The text for a store.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the payload is marked as JSON and is not.
    pub fn to_stored(&self) -> Result<String> {
        let no_text =
            |error: serde_json::Error| Error::invalid(format!("payload is not valid JSON: {error}"));
        let task = &self.task;
        let bytes = task.payload.as_bytes();
        let (payload, payload_base64) = match task.payload.encoding() {
            Encoding::Json => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                (Some(RawValue::from_string(text).map_err(no_text)?), None)
            }
            Encoding::Bytes => (None, Some(BASE64_STANDARD.encode(bytes))),
        };
        let stored = Stored {
            v: if self.cron.is_of_format_1() { 1 } else { VERSION },
            cron: self.cron.to_string(),
            tz: self.zone.to_string(),
            missed: self.missed,
            kind: task.kind.clone(),
            queue: Some(task.queue.clone()),
            payload,
            payload_base64,
            priority: task.priority,
            job: task.job.clone(),
            job_concurrency: task.job_concurrency,
            workflow: task.workflow.clone(),
            on_failure: task.on_failure,
            max_attempts: task.max_attempts,
            timeout_us: task.timeout.map(|timeout| u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX)),
            retry: task.retry.map(RetryPolicy::to_stored),
        };
        serde_json::to_string(&stored).map_err(no_text)
    }

    /// Reads the text from a store.
    ///
    /// # Errors
    /// [`Unreadable`], which says whether a newer program can read it.
    pub fn from_stored(text: &str) -> Result<Self, Unreadable> {
        let version = serde_json::from_str(text).map_or(0, |Version { v }| v);
        if version > VERSION {
            return Err(Unreadable::Newer(version));
        }
        Self::read(text).map_err(|error| Unreadable::Broken(error.to_string()))
    }

    fn read(text: &str) -> Result<Self> {
        let stored: Stored =
            serde_json::from_str(text).map_err(|error| Error::invalid(without_values(&error)))?;
        let queue = match stored.queue {
            Some(queue) => queue,
            None => Name::new("queue", DEFAULT_QUEUE)?,
        };
        let payload = match (stored.payload, stored.payload_base64) {
            (_, Some(text)) => Payload::bytes(
                BASE64_STANDARD.decode(text).map_err(|_| Error::invalid("payload_base64 is not base64"))?,
            ),
            (payload, None) => {
                Payload::json_text(payload.map_or_else(|| "null".to_owned(), |raw| raw.get().to_owned()))?
            }
        };
        let retry = match &stored.retry {
            Some(text) => {
                Some(RetryPolicy::from_stored(text).ok_or_else(|| Error::invalid("retry is damaged"))?)
            }
            None => None,
        };
        Ok(Self {
            cron: stored.cron.parse()?,
            zone: stored.tz.parse()?,
            missed: stored.missed,
            task: NewTask {
                kind: stored.kind,
                queue,
                payload,
                priority: stored.priority,
                start: Start::Now,
                key: None,
                max_attempts: stored.max_attempts,
                retry,
                timeout: stored.timeout_us.map(Duration::from_micros),
                job: stored.job,
                job_concurrency: stored.job_concurrency,
                workflow: stored.workflow,
                on_failure: stored.on_failure,
                // A tick belongs to no caller's trace.
                trace: None,
            },
        })
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the payload: it may be a secret.
        f.debug_struct("Spec")
            .field("cron", &self.cron)
            .field("zone", &self.zone)
            .field("missed", &self.missed)
            .field("kind", &self.task.kind)
            .finish_non_exhaustive()
    }
}

/// Why the text of a schedule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer program wrote it, and fires it too.
    #[error("it was written by a newer version of Windlass (format {0}, this one reads up to {VERSION})")]
    Newer(u32),
    /// No program can read it.
    #[error("{0}")]
    Broken(String),
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// The text as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    v: u32,
    cron: String,
    tz: String,
    #[serde(default)]
    missed: Missed,
    kind: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    #[serde(default, skip_serializing_if = "is_usual")]
    priority: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job_concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_failure: Option<OnFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_usual(priority: &i32) -> bool {
    *priority == 0
}

/// Where the text is damaged, without quoting it: a payload may be a secret.
fn without_values(error: &serde_json::Error) -> String {
    format!("it is damaged at line {} column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Spec {
        let name = |text: &str| Name::new("name", text).unwrap();
        let payload = Payload::json_text(r#"{"n": 123456789012345678901234567890.10}"#).unwrap();
        let task = NewTask {
            queue: name("mail"),
            priority: -3,
            job: Some(name("j")),
            job_concurrency: Some(3),
            workflow: Some(name("w")),
            on_failure: Some(OnFailure::Skip),
            max_attempts: Some(4),
            timeout: Some(Duration::from_micros(1_500)),
            retry: Some(RetryPolicy::default()),
            ..NewTask::new("report", payload).unwrap()
        };
        Spec::raw("0 9 * * MON", task).unwrap().tz("Europe/Berlin").unwrap().missed(Missed::Skip)
    }

    #[test]
    fn a_stored_schedule_is_read_back_complete() {
        let spec = full();
        assert_eq!(Spec::from_stored(&spec.to_stored().unwrap()).unwrap(), spec);
        let bytes = Spec::raw("@daily", NewTask::new("k", Payload::bytes([0, 255])).unwrap()).unwrap();
        let text = bytes.to_stored().unwrap();
        assert_eq!(
            text,
            r#"{"v":1,"cron":"@daily","tz":"UTC","missed":"once","kind":"k","queue":"default","payload_base64":"AP8="}"#
        );
        assert_eq!(Spec::from_stored(&text).unwrap(), bytes);
    }

    #[test]
    fn an_expression_of_format_2_is_marked_as_such() {
        // They skip a newer text, and drop the tick of a broken one.
        for (cron, version) in
            [("@daily", 1), ("0 0 1 * *", 1), ("@every 5m", 2), ("0 0 L * *", 2), ("0 0 * * 5L", 2)]
        {
            let spec = Spec::raw(cron, NewTask::new("k", Payload::bytes([0])).unwrap()).unwrap();
            let text = spec.to_stored().unwrap();
            assert!(text.starts_with(&format!(r#"{{"v":{version},"#)), "{text}");
            assert_eq!(Spec::from_stored(&text).unwrap(), spec);
        }
    }

    #[test]
    fn a_newer_text_is_distinguished_from_a_damaged_one() {
        assert_eq!(Spec::from_stored(r#"{"v":3,"when":"later"}"#), Err(Unreadable::Newer(3)));
        for text in ["", "{", "every hour", "{}", r#"{"v":1,"cron":"61 * * * *","tz":"UTC","kind":"k"}"#] {
            assert!(matches!(Spec::from_stored(text), Err(Unreadable::Broken(_))), "{text}");
        }
        let secret = r#"{"v":1,"cron":"@daily","tz":"UTC","kind":5,"payload":"s3cret"}"#;
        assert!(!Spec::from_stored(secret).unwrap_err().to_string().contains("s3cret"));
    }

    #[test]
    fn a_task_with_a_start_or_a_key_of_its_own_is_refused() {
        let rules = Rules::default();
        let mut spec = full();
        assert_eq!(spec.check(&rules), Ok(()));
        spec.task.start = Start::In(Duration::from_secs(1));
        assert!(spec.check(&rules).unwrap_err().to_string().contains("start"));
        spec.task.start = Start::Now;
        spec.task.key = Some(Key { text: "k".into(), ignore_conflict: false });
        assert!(spec.check(&rules).unwrap_err().to_string().contains("key"));
    }

    #[test]
    fn the_key_of_a_tick_has_its_name_and_its_time() {
        let task = full().task_of(&Name::new("schedule", "nightly").unwrap(), Timestamp::from_ms(60_000));
        assert_eq!(task.key.unwrap().text, "schedule:nightly:60000");
    }

    #[test]
    fn the_log_has_no_payload() {
        assert!(!format!("{:?}", full()).contains("1234"));
    }
}
