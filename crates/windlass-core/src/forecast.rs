//! When is a backlog empty, if tasks come and leave as they do now? From a recorded series of counts.
//!
//! A rate over a few seconds is mostly noise: tasks come in bursts, and workers report every few seconds. So a
//! forecast needs [`SPAN_MIN`] of points. It looks at the last minute first. If the tasks that came and those
//! that left differ by no more than chance explains, it looks further back, up to [`SPAN_MAX`].
//!
//! Two things would make it tell what is not so:
//! - Most tasks came in one burst: they are no rate. It counts only what came after that.
//! - The backlog was to be empty by now, and stands: the drain has ended. It looks only at the time since then.

use std::{fmt, time::Duration};

use crate::time::Timestamp;

/// Shorter series say nothing.
pub const SPAN_MIN: Duration = Duration::from_secs(30);
/// How far back a forecast looks at most.
pub const SPAN_MAX: Duration = Duration::from_mins(5);
/// The spans that a forecast looks at, one after the other, until one of them is clear.
const SPANS: [Duration; 3] = [Duration::from_mins(1), Duration::from_mins(2), SPAN_MAX];
/// A difference of counts below this many standard deviations may be chance.
const DEVIATIONS: f64 = 2.0;
/// Fewer tasks that come at once are no burst.
const BURST_MIN: i64 = 10;
/// A longer time says no more than that it is not at this rate.
const FAR: Duration = Duration::from_hours(24 * 365);

/// One point of the series of a backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// When it was taken.
    pub at: Timestamp,
    /// How many tasks there were to do.
    pub backlog: u64,
    /// How many had come in by then. Only differences count, so the count may begin anywhere.
    pub came: i64,
    /// How many had left by then.
    pub left: i64,
}

/// How many tasks come and leave each second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Tasks that come in.
    pub came_per_s: f64,
    /// Tasks that leave.
    pub left_per_s: f64,
}

/// When a backlog is empty at the present rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Forecast {
    /// It is empty.
    Empty,
    /// After this time.
    In(Duration),
    /// Never, if as many come in and leave as now.
    NotAtThisRate(Rates),
    /// The series is too short, or too few tasks moved.
    TooLittleKnown,
}

impl Forecast {
    /// A stable name of the kind of answer.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::In(_) => "in",
            Self::NotAtThisRate(_) => "not_at_this_rate",
            Self::TooLittleKnown => "too_little_known",
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing to do"),
            Self::In(left) => write!(f, "clears in about {}", about(*left)),
            Self::NotAtThisRate(rates) => {
                let (came, left) = (rate(rates.came_per_s), rate(rates.left_per_s));
                write!(f, "will not clear at this rate: {came} come in, {left} leave")
            }
            Self::TooLittleKnown => f.write_str("too little known yet"),
        }
    }
}

/// Says when the backlog of a series, the oldest point first, is empty.
pub fn forecast(series: &[Point]) -> Forecast {
    let Some(last) = series.last() else { return Forecast::TooLittleKnown };
    if last.backlog == 0 {
        return Forecast::Empty;
    }
    let recent = since_burst(series);
    let standing = standing(recent);
    match by_rates(recent) {
        Forecast::In(left) if left < spans(standing) => by_rates(standing),
        said => said,
    }
}

/// The points since the one step in which more came than in all others of the last [`SPAN_MAX`] together; all
/// points without such a step. Of bursts that come again and again none is the one.
fn since_burst(series: &[Point]) -> &[Point] {
    let from = series.last().map(|last| last.at.before(SPAN_MAX));
    let first = series.iter().position(|point| Some(point.at) >= from).unwrap_or_default();
    let recent = series.get(first..).unwrap_or_default();
    let came = |pair: (&Point, &Point)| pair.1.came.saturating_sub(pair.0.came).max(0);
    let steps: Vec<i64> = recent.iter().zip(recent.iter().skip(1)).map(came).collect();
    let all: i64 = steps.iter().sum();
    let most = steps.iter().enumerate().max_by_key(|(_, came)| **came);
    match most {
        Some((step, came)) if *came >= BURST_MIN && came.saturating_mul(2) > all => {
            recent.get(step + 1..).unwrap_or_default()
        }
        _ => series,
    }
}

/// The newest points, from the one on since which the backlog was never larger than it is now.
fn standing(series: &[Point]) -> &[Point] {
    let now = series.last().map_or(0, |last| last.backlog);
    let larger = series.iter().rposition(|point| point.backlog > now);
    series.get(larger.map_or(0, |larger| larger + 1)..).unwrap_or_default()
}

/// What the rates of a series say, of which the last point has a backlog.
fn by_rates(series: &[Point]) -> Forecast {
    let Some(last) = series.last() else { return Forecast::TooLittleKnown };
    let mut longest = None;
    for span in SPANS {
        let Some(moved) = Moved::within(series, span) else { continue };
        if moved.is_clear() {
            return moved.forecast(last.backlog);
        }
        longest = Some(moved);
    }
    match longest {
        // No more tasks leave than come in, as far as can be told.
        Some(moved) if moved.came + moved.left > 0.0 => balanced(moved),
        Some(_) if spans(series) >= SPANS[0] => Forecast::NotAtThisRate(Rates::default()),
        _ => Forecast::TooLittleKnown,
    }
}

/// The rates of the last `span` of a series; `None` if its points reach back less than a third of that.
pub fn rates(series: &[Point], span: Duration) -> Option<Rates> {
    let moved = Moved::between(series, span)?;
    (moved.over * 3 >= span).then(|| moved.rates())
}

/// About as many come as leave: that is an answer only if enough of them moved.
fn balanced(moved: Moved) -> Forecast {
    const ENOUGH: f64 = 10.0;
    if moved.came + moved.left >= ENOUGH && moved.over >= SPANS[0] {
        Forecast::NotAtThisRate(moved.rates())
    } else {
        Forecast::TooLittleKnown
    }
}

/// How long a series is.
fn spans(series: &[Point]) -> Duration {
    match (series.first(), series.last()) {
        (Some(first), Some(last)) => last.at.since(first.at),
        _ => Duration::ZERO,
    }
}

/// How many tasks came and left between two points.
#[derive(Debug, Clone, Copy)]
struct Moved {
    over: Duration,
    came: f64,
    left: f64,
}

impl Moved {
    /// What moved in the last `span`, if the points of that span reach far enough back.
    fn within(series: &[Point], span: Duration) -> Option<Self> {
        Self::between(series, span).filter(|moved| moved.over >= SPAN_MIN)
    }

    fn between(series: &[Point], span: Duration) -> Option<Self> {
        let last = series.last()?;
        let from = last.at.before(span);
        let first = series.iter().find(|point| point.at >= from)?;
        let over = last.at.since(first.at);
        // A backlog that is counted late can make the count of those that came fall for a moment.
        let count = |to: i64, from: i64| to.saturating_sub(from).max(0) as f64;
        let (came, left) = (count(last.came, first.came), count(last.left, first.left));
        (!over.is_zero()).then_some(Self { over, came, left })
    }

    /// Whether the two counts differ by more than chance explains.
    fn is_clear(&self) -> bool {
        (self.left - self.came).abs() > DEVIATIONS * (self.left + self.came).sqrt()
    }

    fn rates(&self) -> Rates {
        let seconds = self.over.as_secs_f64();
        Rates { came_per_s: self.came / seconds, left_per_s: self.left / seconds }
    }

    fn forecast(&self, backlog: u64) -> Forecast {
        let rates = self.rates();
        let seconds = backlog as f64 / (rates.left_per_s - rates.came_per_s);
        if seconds > 0.0 && seconds < FAR.as_secs_f64() {
            Forecast::In(Duration::from_secs_f64(seconds))
        } else {
            Forecast::NotAtThisRate(rates)
        }
    }
}

/// A duration as roughly as it is known.
fn about(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (minutes, hours, days) = (seconds / 60.0, seconds / 3_600.0, seconds / 86_400.0);
    if seconds < 100.0 {
        format!("{:.0} s", seconds.max(1.0))
    } else if minutes < 100.0 {
        format!("{minutes:.0} min")
    } else if hours < 48.0 {
        format!("{hours:.0} h")
    } else {
        format!("{days:.0} d")
    }
}

/// A rate for people: `40/s`, `3.5/s`, `12/min`, `2/h`, `none`.
pub fn rate(per_s: f64) -> String {
    if per_s <= 0.0 {
        "none".to_owned()
    } else if per_s >= 9.95 {
        format!("{per_s:.0}/s")
    } else if per_s >= 1.0 {
        format!("{per_s:.1}/s")
    } else if per_s * 60.0 >= 1.0 {
        format!("{:.0}/min", per_s * 60.0)
    } else {
        format!("{:.0}/h", (per_s * 3_600.0).max(1.0))
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
