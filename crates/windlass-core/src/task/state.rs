//! The state table: every state of a task and every legal move between two of them.
//!
//! ```text
//!  enqueue ──► scheduled ──due──────────────► ┐
//!         └──► waiting   ──predecessor done─► ├──► ready ──claim──► running ──► done
//!         └──► held      ──job has room─────► ┘      ▲                 ├──────► dead ──redrive──► scheduled
//!                                                    └─ release, crash ┤
//!                            scheduled ◄── retry, snooze ──────────────┤
//!                                                                      └──────► cancelled
//! ```
//!
//! A task with a job goes through held wherever this shows a way to ready. A task whose turn in its workflow
//! comes before its time goes through scheduled.
//!
//! A move that is not in [`TRANSITIONS`] does not happen. Stores guard every write with the state that the
//! move starts from; the conformance suite counts that each move was made.

use serde::{Deserialize, Serialize};

/// The state of a task. It answers "why is this task not running?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not due yet: a future start, a retry delay, a snooze.
    Scheduled,
    /// Waits for an earlier step of its workflow.
    Waiting,
    /// Its job is at its limit or paused, or no live worker can take it.
    Held,
    /// May be claimed now.
    Ready,
    /// Leased to one attempt of one worker.
    Running,
    /// Ended in success.
    Done,
    /// Ended for good: attempts spent, fatal, or too many crashes.
    Dead,
    /// Ended by request.
    Cancelled,
}

impl State {
    /// Every state, in the order of a task's life.
    pub const ALL: [Self; 8] = [
        Self::Scheduled,
        Self::Waiting,
        Self::Held,
        Self::Ready,
        Self::Running,
        Self::Done,
        Self::Dead,
        Self::Cancelled,
    ];

    /// Whether only an operator's retry can move the task again.
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Dead | Self::Cancelled)
    }

    /// The number that stores keep. `ready` is 1 and `running` 2 in every schema.
    pub fn code(self) -> i64 {
        match self {
            Self::Scheduled => 0,
            Self::Ready => 1,
            Self::Running => 2,
            Self::Held => 3,
            Self::Waiting => 4,
            Self::Done => 5,
            Self::Dead => 6,
            Self::Cancelled => 7,
        }
    }

    /// The state of a stored number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The state's name as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for State {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|state| state.as_str()).collect();
            crate::error::Error::invalid(format!("unknown state {text:?}; one of {}", known.join(", ")))
        })
    }
}

/// What moves a task from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Its time has come.
    Due,
    /// Its predecessor in the workflow succeeded (or was skipped by policy).
    Advance,
    /// The same, but it is not due yet.
    Postpone,
    /// It could be ready, but its job decides.
    Hold,
    /// Its job has room.
    Admit,
    /// Its job's limit fell, or its lane has no live worker.
    Demote,
    /// A worker leased it.
    Claim,
    /// The handler succeeded.
    Succeed,
    /// The handler failed and attempts are left.
    Retry,
    /// The handler asked to be called again later, without spending an attempt.
    Snooze,
    /// The worker handed it back without spending an attempt.
    Release,
    /// Its worker died while it ran; the attempt is not spent.
    Crash,
    /// Its worker died while it ran, for the last allowed time.
    CrashOut,
    /// The handler failed and no attempts are left, or the handler said that the task can never succeed.
    Fail,
    /// A user asked for its end.
    Cancel,
    /// An operator granted a dead task new attempts.
    Redrive,
    /// The same for a step that its workflow has passed: the step goes to the end of the workflow.
    Append,
}

impl Event {
    /// Whether the event belongs to the gates of jobs and workflows.
    pub fn is_gate(self) -> bool {
        matches!(
            self,
            Self::Advance | Self::Postpone | Self::Hold | Self::Admit | Self::Demote | Self::Append
        )
    }
}

/// States that a new task may start in.
pub const ENTRIES: [State; 4] = [State::Scheduled, State::Waiting, State::Held, State::Ready];

/// Every legal move: from, by, to.
pub const TRANSITIONS: &[(State, Event, State)] = &[
    (State::Scheduled, Event::Due, State::Ready),
    (State::Scheduled, Event::Hold, State::Held),
    (State::Scheduled, Event::Cancel, State::Cancelled),
    (State::Waiting, Event::Advance, State::Ready),
    (State::Waiting, Event::Postpone, State::Scheduled),
    (State::Waiting, Event::Hold, State::Held),
    (State::Waiting, Event::Cancel, State::Cancelled),
    (State::Held, Event::Admit, State::Ready),
    (State::Held, Event::Cancel, State::Cancelled),
    (State::Ready, Event::Claim, State::Running),
    (State::Ready, Event::Demote, State::Held),
    (State::Ready, Event::Cancel, State::Cancelled),
    (State::Running, Event::Succeed, State::Done),
    (State::Running, Event::Retry, State::Scheduled),
    (State::Running, Event::Snooze, State::Scheduled),
    (State::Running, Event::Release, State::Ready),
    (State::Running, Event::Crash, State::Ready),
    (State::Running, Event::Hold, State::Held),
    (State::Running, Event::CrashOut, State::Dead),
    (State::Running, Event::Fail, State::Dead),
    (State::Running, Event::Cancel, State::Cancelled),
    (State::Dead, Event::Redrive, State::Scheduled),
    (State::Dead, Event::Append, State::Waiting),
];

/// The state that an event leads to, if the move is legal.
pub fn next(from: State, event: Event) -> Option<State> {
    TRANSITIONS.iter().find(|(f, e, _)| *f == from && *e == event).map(|(_, _, to)| *to)
}

/// The event that leads from one state to another, if the move is legal; the first one if there are several.
pub fn between(from: State, to: State) -> Option<Event> {
    TRANSITIONS.iter().find(|(f, _, t)| *f == from && *t == to).map(|(_, e, _)| *e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_redrive_of_a_dead_task_leaves_an_ended_state() {
        for (from, event, _) in TRANSITIONS {
            if from.is_ended() {
                assert!(*from == State::Dead && matches!(event, Event::Redrive | Event::Append));
            }
        }
    }

    #[test]
    fn an_event_leads_to_one_state_only() {
        for (from, event, to) in TRANSITIONS {
            assert_eq!(next(*from, *event), Some(*to));
            let same = TRANSITIONS.iter().filter(|(f, e, _)| f == from && e == event).count();
            assert_eq!(same, 1, "{from} {event:?}");
        }
    }

    #[test]
    fn codes_and_names_are_unique_and_read_back() {
        for state in State::ALL {
            assert_eq!(State::from_code(state.code()), Some(state));
            assert_eq!(state.as_str().parse::<State>().unwrap(), state);
        }
        assert!("running ".parse::<State>().is_err());
    }

    #[test]
    fn every_state_can_be_reached_and_every_unfinished_one_left() {
        for state in State::ALL {
            assert!(ENTRIES.contains(&state) || TRANSITIONS.iter().any(|(_, _, to)| *to == state));
            assert!(state.is_ended() || TRANSITIONS.iter().any(|(from, _, _)| *from == state));
        }
    }
}
