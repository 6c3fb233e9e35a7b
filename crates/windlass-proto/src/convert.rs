//! Converts messages to the types of `windlass-core` and back.
//!
//! Incoming values are checked here and refused with the name of the field; outgoing values are always valid.

mod claim;
mod enqueue;
mod error;
mod gate;
mod record;
mod settle;
mod store;
mod worker;

use std::time::Duration;

use windlass_core::{
    Encoding, Error, Name, OnFailure, Payload, Result, RetryPolicy, State, TaskId, WorkerId,
};

use crate::v1;

pub use enqueue::checked_payload;
pub use error::{error_of, message_of};
pub use store::hint;
pub use worker::{exact, report};

/// Whole milliseconds, rounded up: a given limit must never become zero, which means none.
pub fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A task's id from its text.
pub fn task_id(text: &str) -> Result<TaskId> {
    text.parse().map_err(|error| Error::invalid(format!("task_id: {error}")))
}

/// A task's id, or none for an empty text.
pub fn some_task_id(text: &str) -> Result<Option<TaskId>> {
    if text.is_empty() { Ok(None) } else { task_id(text).map(Some) }
}

/// A worker's id from its text.
pub fn worker_id(text: &str) -> Result<WorkerId> {
    text.parse()
}

/// A worker's id, or none for an empty text.
pub fn some_worker_id(text: &str) -> Result<Option<WorkerId>> {
    if text.is_empty() { Ok(None) } else { worker_id(text).map(Some) }
}

/// A name, or none for an empty text.
pub fn some_name(what: &str, text: &str) -> Result<Option<Name>> {
    if text.is_empty() { Ok(None) } else { Name::stored(what, text).map(Some) }
}

/// Several names.
pub fn names(what: &str, texts: &[String]) -> Result<Vec<Name>> {
    texts.iter().map(|text| Name::stored(what, text)).collect()
}

/// The texts of several names.
pub fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The text of a name, empty for none.
pub fn text(name: Option<&Name>) -> String {
    name.map(ToString::to_string).unwrap_or_default()
}

/// The text of an id, empty for none.
pub fn id_text<T: ToString>(id: Option<T>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// A required message.
pub fn required<T>(what: &str, message: Option<T>) -> Result<T> {
    message.ok_or_else(|| Error::invalid(format!("{what} is missing")))
}

impl From<Payload> for v1::Payload {
    fn from(payload: Payload) -> Self {
        let encoding = match payload.encoding() {
            Encoding::Json => v1::Encoding::Json,
            Encoding::Bytes => v1::Encoding::Bytes,
        };
        Self { encoding: encoding.into(), data: payload.into_bytes() }
    }
}

/// Trusts a payload that comes from a store.
impl From<v1::Payload> for Payload {
    fn from(payload: v1::Payload) -> Self {
        let encoding = match payload.encoding() {
            v1::Encoding::Json => Encoding::Json,
            v1::Encoding::Bytes => Encoding::Bytes,
        };
        Self::from_stored(encoding, payload.data)
    }
}

impl From<RetryPolicy> for v1::RetryPolicy {
    fn from(policy: RetryPolicy) -> Self {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self { base_ns: nanos(policy.base), max_ns: nanos(policy.max), jitter_percent: policy.jitter_percent }
    }
}

impl From<v1::RetryPolicy> for RetryPolicy {
    fn from(policy: v1::RetryPolicy) -> Self {
        Self {
            base: Duration::from_nanos(policy.base_ns),
            max: Duration::from_nanos(policy.max_ns),
            jitter_percent: policy.jitter_percent,
        }
    }
}

impl From<State> for v1::TaskState {
    fn from(state: State) -> Self {
        match state {
            State::Scheduled => Self::Scheduled,
            State::Waiting => Self::Waiting,
            State::Held => Self::Held,
            State::Ready => Self::Ready,
            State::Running => Self::Running,
            State::Done => Self::Done,
            State::Dead => Self::Dead,
            State::Cancelled => Self::Cancelled,
        }
    }
}

impl v1::TaskState {
    /// The state, if one is named.
    pub fn known(self) -> Option<State> {
        match self {
            Self::Unspecified => None,
            Self::Scheduled => Some(State::Scheduled),
            Self::Waiting => Some(State::Waiting),
            Self::Held => Some(State::Held),
            Self::Ready => Some(State::Ready),
            Self::Running => Some(State::Running),
            Self::Done => Some(State::Done),
            Self::Dead => Some(State::Dead),
            Self::Cancelled => Some(State::Cancelled),
        }
    }
}

impl From<Option<OnFailure>> for v1::OnFailure {
    fn from(policy: Option<OnFailure>) -> Self {
        match policy {
            None => Self::Unspecified,
            Some(OnFailure::Block) => Self::Block,
            Some(OnFailure::Skip) => Self::Skip,
            Some(OnFailure::Cancel) => Self::Cancel,
        }
    }
}

impl v1::OnFailure {
    /// The policy, if one is named.
    pub fn known(self) -> Option<OnFailure> {
        match self {
            Self::Unspecified => None,
            Self::Block => Some(OnFailure::Block),
            Self::Skip => Some(OnFailure::Skip),
            Self::Cancel => Some(OnFailure::Cancel),
        }
    }
}
