//! What operators did and do: bulk runs, and the last calls that changed something. A store keeps both, so that
//! every server of a fleet shows the same.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    error::{Error, Result},
    time::Timestamp,
};

/// Most bulk runs at work at a time. Each writes to the store about once a second.
pub const RUNS_MAX: u32 = 4;
/// Ended runs that a store keeps; the oldest makes room.
pub const RUNS_KEPT: u32 = 100;
/// Most bytes of the text of a run.
pub const RUN_MAX_BYTES: usize = 256 << 10;
/// Calls that a store keeps; the oldest makes room.
pub const CALLS_KEPT: u32 = 1_000;
/// Letters of each text of a call that are kept.
pub const CALL_TEXT_MAX: usize = 300;

/// A bulk run as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Rises with each run.
    pub id: u64,
    /// Rises with each change: who saves it names the version that it read.
    pub version: u64,
    /// Whether it has not ended.
    pub is_running: bool,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it was last saved.
    pub updated_at: Timestamp,
    /// The store's clock when this was read.
    pub read_at: Timestamp,
    /// What is to do and what was done. A store does not read it.
    pub text: String,
}

impl RunRow {
    /// How long nothing of it was saved, by the store's clock.
    pub fn idle_for(&self) -> Duration {
        self.read_at.since(self.updated_at)
    }
}

/// A call that changed something, to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    /// How long ago it was answered.
    pub age: Duration,
    /// Who called.
    pub who: String,
    /// The call, as the table of calls names it.
    pub call: String,
    /// What it was about: a path, or the names and ids in a message.
    pub about: String,
    /// How it was answered, in one word.
    pub result: String,
}

/// A call that changed something, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Rises with each call.
    pub id: u64,
    /// When it was answered, by the store's clock.
    pub at: Timestamp,
    /// Who called.
    pub who: String,
    /// The call, as the table of calls names it.
    pub call: String,
    /// What it was about.
    pub about: String,
    /// How it was answered, in one word.
    pub result: String,
}

/// What operators did and do.
#[async_trait]
pub trait Operators: Send + Sync {
    /// Adds a run. Removes the oldest ended ones over [`RUNS_KEPT`].
    ///
    /// # Errors
    /// [`Error::Conflict`] if [`RUNS_MAX`] are at work already.
    async fn start_run(&self, text: &str) -> Result<RunRow>;

    /// Replaces the text of a run, if it still has this version. A run that has ended stays ended. `None` if it
    /// has another version, or there is no such run.
    async fn save_run(&self, id: u64, version: u64, still: StillRuns, text: &str) -> Result<Option<RunRow>>;

    /// Runs that have not ended, oldest first.
    async fn running_runs(&self) -> Result<Vec<RunRow>>;

    /// The newest runs, newest first.
    async fn runs(&self, limit: u32) -> Result<Vec<RunRow>>;

    /// One run.
    async fn run(&self, id: u64) -> Result<Option<RunRow>>;

    /// Adds calls, oldest first. Removes the oldest ones over [`CALLS_KEPT`].
    async fn note_calls(&self, calls: &[NewCall]) -> Result<()>;

    /// Calls, newest first, below this id.
    async fn calls(&self, below: Option<u64>, limit: u32) -> Result<Vec<CallRecord>>;
}

/// Whether a saved run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StillRuns {
    /// It does.
    Yes,
    /// It has ended.
    No,
}

/// The refusal of a run while [`RUNS_MAX`] are at work.
pub fn too_many_runs() -> Error {
    Error::Conflict(format!("{RUNS_MAX} bulk runs are at work already"))
}

/// Checks the text of a run.
///
/// # Errors
/// [`Error::Invalid`] if it is longer than [`RUN_MAX_BYTES`].
pub fn check_run(text: &str) -> Result<()> {
    if text.len() > RUN_MAX_BYTES {
        return Err(Error::invalid(format!(
            "a bulk run takes {} bytes; at most {RUN_MAX_BYTES}",
            text.len()
        )));
    }
    Ok(())
}

/// The pace of a run: so many changes, evenly over a time, the first at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many changes the time is meant for. There may be more: they come at the same pace.
    pub changes: u64,
    /// The time; zero for as fast as possible.
    pub over: Duration,
}

impl Pace {
    /// How many changes are due after this time; `None` if the pace sets no limit.
    pub fn due(self, worked: Duration) -> Option<u64> {
        if self.over.is_zero() || self.changes == 0 {
            return None;
        }
        let due = worked.as_micros() * u128::from(self.changes) / self.over.as_micros().max(1);
        Some(u64::try_from(due + 1).unwrap_or(u64::MAX))
    }

    /// After how much time the change with this number is due; the first has the number 0.
    pub fn due_after(self, number: u64) -> Duration {
        if self.due(Duration::ZERO).is_none() {
            return Duration::ZERO;
        }
        let micros = (self.over.as_micros() * u128::from(number)).div_ceil(u128::from(self.changes.max(1)));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// A store that keeps none of this.
pub(crate) struct NoOperators;

impl NoOperators {
    fn refuse<T>() -> Result<T> {
        Err(Error::Unsupported("this store keeps no bulk runs and no activity".to_owned()))
    }
}

#[async_trait]
impl Operators for NoOperators {
    async fn start_run(&self, _: &str) -> Result<RunRow> {
        Self::refuse()
    }

    async fn save_run(&self, _: u64, _: u64, _: StillRuns, _: &str) -> Result<Option<RunRow>> {
        Self::refuse()
    }

    async fn running_runs(&self) -> Result<Vec<RunRow>> {
        Self::refuse()
    }

    async fn runs(&self, _: u32) -> Result<Vec<RunRow>> {
        Self::refuse()
    }

    async fn run(&self, _: u64) -> Result<Option<RunRow>> {
        Self::refuse()
    }

    async fn note_calls(&self, _: &[NewCall]) -> Result<()> {
        Self::refuse()
    }

    async fn calls(&self, _: Option<u64>, _: u32) -> Result<Vec<CallRecord>> {
        Self::refuse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_evenly_and_the_first_at_once() {
        let pace = Pace { changes: 4, over: Duration::from_secs(10) };
        let due = |ms| pace.due(Duration::from_millis(ms));
        assert_eq!([0, 2_499, 2_500, 9_999].map(due), [Some(1), Some(1), Some(2), Some(4)]);
        assert_eq!(due(12_500), Some(6), "what was not counted comes at the same pace");
        assert_eq!(pace.due_after(2), Duration::from_secs(5));
    }

    #[test]
    fn what_is_due_is_due_after_the_time_that_the_pace_names() {
        for (changes, ms) in [(3, 10_000), (7, 1), (100_000, 600_000), (1, u64::from(u32::MAX))] {
            let pace = Pace { changes, over: Duration::from_millis(ms) };
            for number in [0, 1, 2, 5, changes - 1] {
                assert!(pace.due(pace.due_after(number)) > Some(number), "{pace:?} {number}");
            }
        }
    }

    #[test]
    fn a_pace_without_a_time_sets_no_limit() {
        assert_eq!(Pace { changes: 5, over: Duration::ZERO }.due(Duration::ZERO), None);
        assert_eq!(Pace { changes: 0, over: Duration::from_secs(1) }.due(Duration::ZERO), None);
        assert_eq!(Pace { changes: 5, over: Duration::ZERO }.due_after(9), Duration::ZERO);
    }
}
