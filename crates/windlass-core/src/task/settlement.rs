//! Turns a handler's outcome into what the store writes: one pure function.

use crate::{
    outcome::{Outcome, Output},
    rules::Rules,
    state::{Event, State},
    task::Claimed,
    time::Timestamp,
};

/// What the store writes at the end of an attempt. Applied only under the lease that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Done, perhaps with an output.
    Done {
        /// What the handler left behind.
        output: Output,
        /// A remark, such as an output that was too large to keep.
        note: Option<String>,
    },
    /// Failed; the task runs again at `due_at`.
    Retry {
        /// When it may run again, by the store's clock.
        due_at: Timestamp,
        /// What went wrong.
        error: String,
    },
    /// Runs again at `due_at`; the attempt is not spent.
    Snooze {
        /// When it may run again, by the store's clock.
        due_at: Timestamp,
    },
    /// Handed back, ready at once; the attempt is not spent.
    Release,
    /// Dead, for this reason.
    Dead {
        /// Why it will not run again.
        error: String,
    },
    /// Cancelled, for this reason.
    Cancelled {
        /// The reason of the request.
        reason: String,
    },
}

impl Settlement {
    /// The move in the state table that this settlement makes.
    pub fn event(&self) -> Event {
        match self {
            Self::Done { .. } => Event::Succeed,
            Self::Retry { .. } => Event::Retry,
            Self::Snooze { .. } => Event::Snooze,
            Self::Release => Event::Release,
            Self::Dead { .. } => Event::Fail,
            Self::Cancelled { .. } => Event::Cancel,
        }
    }

    /// The state that the task is in afterwards.
    pub fn state(&self) -> State {
        match self {
            Self::Done { .. } => State::Done,
            Self::Retry { .. } | Self::Snooze { .. } => State::Scheduled,
            Self::Release => State::Ready,
            Self::Dead { .. } => State::Dead,
            Self::Cancelled { .. } => State::Cancelled,
        }
    }

    /// The same settlement, with texts and output cut to what the rules allow.
    #[must_use]
    pub fn within(self, rules: &Rules) -> Self {
        match self {
            Self::Done { output: Some(output), .. } if output.len() > rules.output_max_bytes => {
                Self::Done { note: Some(too_large(output.len(), rules)), output: None }
            }
            Self::Done { output, note } => {
                Self::Done { output, note: note.map(|note| rules.clip_error(&note)) }
            }
            Self::Retry { due_at, error } => Self::Retry { due_at, error: rules.clip_error(&error) },
            Self::Dead { error } => Self::Dead { error: rules.clip_error(&error) },
            Self::Cancelled { reason } => Self::Cancelled { reason: rules.clip_error(&reason) },
            Self::Snooze { .. } | Self::Release => self,
        }
    }

    /// Whether the attempt is not spent.
    pub fn gives_attempt_back(&self) -> bool {
        matches!(self, Self::Snooze { .. } | Self::Release)
    }

    /// The text to keep as the task's last error, if any.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Retry { error, .. } | Self::Dead { error } => Some(error),
            Self::Cancelled { reason } => Some(reason),
            Self::Done { note, .. } => note.as_deref(),
            Self::Snooze { .. } | Self::Release => None,
        }
    }
}

/// The note that replaces an output that is too large to keep.
fn too_large(bytes: usize, rules: &Rules) -> String {
    format!("output of {bytes} bytes dropped: over output_max_bytes ({})", rules.output_max_bytes)
}

/// Decides how an attempt ends. `now` is a reading of the store's clock.
///
/// A failure of the last granted attempt ends the task. An output that is too large is replaced by a note;
/// the task still succeeds. Error text is made safe for every store.
pub fn settle(task: &Claimed, outcome: Outcome, now: Timestamp, rules: &Rules) -> Settlement {
    match outcome {
        Outcome::Done(Some(output)) if output.len() > rules.output_max_bytes => {
            Settlement::Done { note: Some(too_large(output.len(), rules)), output: None }
        }
        Outcome::Done(output) => Settlement::Done { output, note: None },
        Outcome::Retry { error, .. } if task.attempt >= task.max_attempts => Settlement::Dead {
            error: rules.clip_error(&format!("attempt {} of {}: {error}", task.attempt, task.max_attempts)),
        },
        Outcome::Retry { error, after } => {
            let policy = task.retry.unwrap_or(rules.retry);
            let delay = after.unwrap_or_else(|| policy.delay(task.id, task.attempt));
            Settlement::Retry { due_at: now.after(delay), error: rules.clip_error(&error) }
        }
        Outcome::Snooze(delay) => Settlement::Snooze { due_at: now.after(delay) },
        Outcome::Cancel(reason) => Settlement::Cancelled { reason: rules.clip_error(&reason) },
        Outcome::Dead(reason) => Settlement::Dead { error: rules.clip_error(&reason) },
        Outcome::Release => Settlement::Release,
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        id::{LaneId, TaskId, WorkerId},
        name::Name,
        payload::Payload,
        state,
        task::Lane,
    };

    fn claimed(attempt: u32) -> Claimed {
        Claimed {
            id: TaskId::from_raw(7),
            lease: 4,
            attempt,
            max_attempts: 3,
            crashes: 0,
            worker: WorkerId(1),
            claim_no: 1,
            lane: Arc::new(Lane {
                id: LaneId(1),
                queue: Name::new("queue", "default").unwrap(),
                kind: Name::new("kind", "echo").unwrap(),
            }),
            priority: 0,
            payload: Payload::json(&1).unwrap(),
            job: None,
            workflow: None,
            timeout: None,
            retry: None,
            trace: None,
            claimed_at: Timestamp::from_ms(1000),
        }
    }

    fn decide(attempt: u32, outcome: Outcome) -> Settlement {
        settle(&claimed(attempt), outcome, Timestamp::from_ms(5000), &Rules::default())
    }

    #[test]
    fn a_failure_is_retried_until_the_attempts_are_spent() {
        assert!(matches!(decide(1, Outcome::retry("x")), Settlement::Retry { .. }));
        assert!(matches!(decide(2, Outcome::retry("x")), Settlement::Retry { .. }));
        let Settlement::Dead { error } = decide(3, Outcome::retry("x")) else { panic!("not dead") };
        assert_eq!(error, "attempt 3 of 3: x");
    }

    #[test]
    fn a_delay_from_the_handler_replaces_the_policy() {
        let outcome = Outcome::retry_after(Duration::from_secs(30), "busy");
        assert_eq!(
            decide(1, outcome),
            Settlement::Retry { due_at: Timestamp::from_ms(35_000), error: "busy".into() }
        );
    }

    #[test]
    fn snooze_and_release_give_the_attempt_back() {
        assert!(decide(3, Outcome::snooze(Duration::from_secs(1))).gives_attempt_back());
        assert!(decide(3, Outcome::Release).gives_attempt_back());
        assert!(!decide(1, Outcome::retry("x")).gives_attempt_back());
    }

    #[test]
    fn an_output_that_is_too_large_does_not_undo_the_success() {
        let output = Payload::bytes(vec![0; (64 << 10) + 1]);
        let Settlement::Done { output: None, note: Some(note) } = decide(1, output.into()) else {
            panic!("not done")
        };
        assert!(note.contains("65537"), "{note}");
    }

    #[test]
    fn every_settlement_is_a_legal_move() {
        let outcomes = [
            Outcome::Done(None),
            Outcome::retry("x"),
            Outcome::snooze(Duration::ZERO),
            Outcome::cancel("x"),
            Outcome::dead("x"),
            Outcome::Release,
        ];
        for outcome in outcomes {
            let settlement = decide(1, outcome);
            assert_eq!(state::next(State::Running, settlement.event()), Some(settlement.state()));
        }
    }
}
