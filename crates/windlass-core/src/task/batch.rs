//! What a batch of new tasks may be, as far as this shows without a store. Every store makes these checks
//! before it looks at anything that it has, so that the answer depends on the batch alone.

use std::collections::HashMap;

use crate::{
    error::{Error, Result},
    rules::Rules,
    task::NewTask,
};

/// Checks a batch.
///
/// # Errors
/// [`Error::Invalid`] if it has too many tasks, or a task or its keys break a rule.
pub fn check(tasks: &[NewTask], rules: &Rules) -> Result<()> {
    if tasks.len() > rules.batch_max {
        let n = tasks.len();
        return Err(Error::invalid(format!("a batch of {n} tasks is over batch_max ({})", rules.batch_max)));
    }
    for task in tasks {
        task.check(rules)?;
    }
    check_keys(tasks)
}

/// Checks that each task has the kind and the payload of the first task of the batch with the same queue and
/// key, unless it ignores conflicts.
///
/// # Errors
/// [`Error::Invalid`] with the key.
pub fn check_keys(tasks: &[NewTask]) -> Result<()> {
    let mut first: HashMap<(&str, &str), &NewTask> = HashMap::new();
    for task in tasks {
        let Some(key) = &task.key else { continue };
        let first = *first.entry((task.queue.as_str(), key.text.as_str())).or_insert(task);
        let is_same = first.kind == task.kind && first.payload == task.payload;
        if !is_same && !key.ignore_conflict {
            return Err(Error::invalid(format!(
                "idempotency key {:?} is used twice in one batch with different kinds or payloads",
                key.text
            )));
        }
    }
    Ok(())
}
