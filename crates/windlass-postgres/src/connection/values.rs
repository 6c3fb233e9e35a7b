//! Values as parameters hold them, and as columns do.

use std::time::Duration;

use tokio_postgres::Row;
use windlass_core::{JobState, LaneId, State, TaskId, Timestamp};

/// A duration in milliseconds. The longest can still be added to a time.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// A time limit in milliseconds, rounded up so that a short one does not vanish.
pub(crate) fn ms_up(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A limit as an `integer`.
pub(crate) fn narrow(limit: u32) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}

/// One value of each row, as an array.
pub(crate) fn column<'a, T, V>(rows: &'a [T], value: impl FnMut(&'a T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}

/// What columns hold, by their places in the answer.
pub(crate) trait Cells {
    fn row(&self) -> &Row;

    fn task(&self, place: usize) -> TaskId {
        TaskId::from_raw(self.row().get(place))
    }

    fn lane(&self, place: usize) -> LaneId {
        LaneId(i64::from(self.row().get::<_, i32>(place)))
    }

    fn time(&self, place: usize) -> Timestamp {
        Timestamp::from_ms(self.row().get(place))
    }

    fn time_if_any(&self, place: usize) -> Option<Timestamp> {
        self.row().get::<_, Option<i64>>(place).map(Timestamp::from_ms)
    }

    /// A `bigint` that is not negative.
    fn number(&self, place: usize) -> u64 {
        self.row().get::<_, i64>(place) as u64
    }

    /// An `integer` that is not negative.
    fn small(&self, place: usize) -> u32 {
        self.row().get::<_, i32>(place) as u32
    }

    /// Nothing if a newer program wrote a state that this one does not know.
    fn state(&self, place: usize) -> Option<State> {
        State::from_code(i64::from(self.row().get::<_, i16>(place)))
    }

    /// A job in a state that this program does not know counts as paused.
    fn job_state(&self, place: usize) -> JobState {
        JobState::from_code(i64::from(self.row().get::<_, i16>(place))).unwrap_or(JobState::Paused)
    }
}

impl Cells for Row {
    fn row(&self) -> &Row {
        self
    }
}
