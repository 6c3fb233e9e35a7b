//! Dead tasks by error: a thousand failures are usually a handful of causes.

use std::collections::HashMap;

use windlass_core::{Name, State, store::Filter};

use super::{Operations, Result, list::READ_ROWS};
use crate::api::{DeadGroup, DeadGroups, ErrorDetail, TaskFilter};

/// Dead tasks that one call looks at, the newest.
pub const DEAD_SCAN_MAX: u64 = 10_000;
/// Characters of an error that decide its group.
const GROUP_ERROR_CHARS: usize = 200;
/// A word with a digit in it that is at least so long is an id.
const ID_MIN_CHARS: usize = 8;

impl Operations {
    /// Groups dead tasks by kind and error, the largest group first.
    pub async fn dead_groups(&self, filter: TaskFilter) -> Result<DeadGroups> {
        if let Some(state) = filter.state.filter(|state| *state != State::Dead) {
            return Err(ErrorDetail::invalid(format!(
                "state {state} is not dead; only dead tasks are grouped"
            )));
        }
        let filter = Filter { state: Some(State::Dead), ..filter.into() };
        let mut groups: HashMap<(Name, String), DeadGroup> = HashMap::new();
        let (mut looked_at, mut after) = (0, None);
        loop {
            let page = self.store.tasks(&filter, after, READ_ROWS).await?;
            looked_at += page.tasks.len() as u64;
            for task in page.tasks {
                let kind = task.lane.kind.clone();
                let error = cause(task.error.as_deref().unwrap_or("no reason kept"));
                let group = groups.entry((kind.clone(), error.clone())).or_insert(DeadGroup {
                    error,
                    kind,
                    count: 0,
                    example: task.id,
                    last_ended_at: None,
                });
                group.count += 1;
                group.example = group.example.max(task.id);
                group.last_ended_at = group.last_ended_at.max(task.ended_at);
            }
            after = page.next;
            if after.is_none() || looked_at >= DEAD_SCAN_MAX {
                break;
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| b.example.cmp(&a.example)));
        Ok(DeadGroups { groups, looked_at, more: after.is_some() })
    }
}

/// The error without what differs from task to task: numbers and ids become `#`. A status code stays, because
/// 404 and 503 are different causes.
fn cause(error: &str) -> String {
    let mut cause = String::new();
    let mut status_follows = false;
    for word in words(error) {
        let is_word = word.chars().next().is_some_and(char::is_alphanumeric);
        if !is_word {
            cause.push_str(word);
            continue;
        }
        let has_digit = word.chars().any(|letter| letter.is_ascii_digit());
        let is_status =
            status_follows && word.len() == 3 && word.chars().all(|letter| letter.is_ascii_digit());
        status_follows = ["http", "status", "code"].iter().any(|name| word.eq_ignore_ascii_case(name));
        if !has_digit || is_status {
            cause.push_str(word);
        } else if word.chars().count() >= ID_MIN_CHARS {
            cause.push('#');
        } else {
            let mut digits = word.split(|letter: char| letter.is_ascii_digit());
            cause.push_str(digits.next().unwrap_or_default());
            let rest: Vec<_> = digits.filter(|piece| !piece.is_empty()).collect();
            cause.push('#');
            cause.push_str(&rest.join("#"));
        }
    }
    cause.chars().take(GROUP_ERROR_CHARS).collect()
}

/// Runs of letters and digits, and the characters between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest
            .find(|letter: char| letter.is_alphanumeric() != first.is_alphanumeric())
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_do_not_make_a_cause() {
        for (error, same) in [
            ("connect to 10.0.0.7:8080 failed", "connect to 10.1.2.3:443 failed"),
            ("no user 42", "no user 7"),
            ("order 01JD3M8K2ZQ4R is gone", "order 01JD3M8K2ZQ5T is gone"),
            ("key 3f2a9c1d77aa0b42 expired", "key 00ff00ff00ff00ff expired"),
            ("took 31s", "took 5s"),
        ] {
            assert_eq!(cause(error), cause(same));
        }
        assert_eq!(cause("no user 42"), "no user #");
        assert_eq!(cause("täglich: größer als 7 %"), "täglich: größer als # %");
    }

    #[test]
    fn a_status_is_part_of_the_cause() {
        assert_ne!(cause("http 404 from the target"), cause("http 503 from the target"));
        assert_eq!(cause("status: 404 after 31 ms"), "status: 404 after # ms");
    }
}
