//! Run times by outcome.

use std::time::Duration;

use windlass_core::Outcome;

use super::{histogram::Histogram, names, text::Text};

/// The outcome of an attempt, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Success.
    Done,
    /// A failure that may pass, or a request to run again later.
    Retry,
    /// A permanent failure.
    Dead,
    /// It was cancelled.
    Cancelled,
}

impl Ended {
    const ALL: [Self; 4] = [Self::Done, Self::Retry, Self::Dead, Self::Cancelled];

    /// The label of an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done(_) => Self::Done,
            Outcome::Retry { .. } | Outcome::Snooze(_) => Self::Retry,
            Outcome::Dead(_) => Self::Dead,
            Outcome::Cancel(_) | Outcome::Release => Self::Cancelled,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Run times of `http` tasks, by outcome.
#[derive(Debug)]
pub struct OutcomeTimes([Histogram; 4]);

impl Default for OutcomeTimes {
    fn default() -> Self {
        Self(Ended::ALL.map(|_| Histogram::of_seconds(&names::HTTP_DURATION)))
    }
}

impl OutcomeTimes {
    /// Records one.
    pub fn note(&self, ended: Ended, took: Duration) {
        let place = Ended::ALL.iter().position(|known| *known == ended);
        if let Some(times) = place.and_then(|place| self.0.get(place)) {
            times.observe(took);
        }
    }

    pub(super) fn write(&self, text: &mut Text) {
        let mut family = text.family(&names::HTTP_DURATION);
        for (ended, times) in Ended::ALL.iter().zip(&self.0) {
            family.histogram(&[ended.as_str()], &times.read());
        }
    }
}
