//! The output of a task as a typed value.

use serde::de::DeserializeOwned;
use windlass_core::{Error, Payload, Result, State, TaskRecord};

/// Reads the output of a successful task; a missing output reads as JSON's `null`.
pub(super) fn read<T: DeserializeOwned>(task: &TaskRecord) -> Result<T> {
    let (id, state) = (task.id, task.state);
    match state {
        State::Done => {
            let nothing = Payload::json(&())?;
            task.output.as_ref().unwrap_or(&nothing).decode().map_err(|reason| {
                Error::invalid(format!("the output of task {id} is not of this type: {reason}"))
            })
        }
        State::Dead | State::Cancelled => {
            let reason = task.error.as_deref().unwrap_or("no reason kept");
            Err(Error::Conflict(format!("task {id} ended {state}: {reason}")))
        }
        _ => Err(Error::Conflict(format!("task {id} has not ended: it is {state}"))),
    }
}
