//! How long something took, by what came of it.

use std::time::Duration;

use windlass_core::Outcome;

use super::{histogram::Histogram, names, text::Text};

/// What came of an attempt, for a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Success.
    Done,
    /// Failure that may pass, or a wish to be called later.
    Retry,
    /// Failure for good.
    Dead,
    /// It was asked to end.
    Cancelled,
}

impl Ended {
    const ALL: [Self; 4] = [Self::Done, Self::Retry, Self::Dead, Self::Cancelled];

    /// What an outcome counts as.
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

/// Times of `http` tasks, told apart by what came of them.
#[derive(Debug)]
pub struct OutcomeTimes([Histogram; 4]);

impl Default for OutcomeTimes {
    fn default() -> Self {
        Self(Ended::ALL.map(|_| Histogram::of_seconds(&names::HTTP_DURATION)))
    }
}

impl OutcomeTimes {
    /// Counts one.
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
