//! Charts of the last hour or day, for all queues together or for one.

use std::time::Duration;

use maud::{Markup, html};
use serde::Deserialize;
use windlass_core::{Name, Timestamp};

use super::{
    chart::{Axis, Line, lines},
    flow::rate,
    parts::{count, time},
    viewer::{Ask, Viewer},
};
use crate::{
    api::{ErrorDetail, Series, SeriesPoint},
    operations::Result,
};

/// Size of a chart in its own units.
const CHART: (u32, u32) = (720, 140);
/// The newest points are five seconds apart. A longer pause between two of them is a gap: the server did not run,
/// or the store did not answer.
const GAP: Duration = Duration::from_secs(45);
/// The same for points of more than an hour ago, which are a minute apart.
const OLD_GAP: Duration = Duration::from_secs(150);
/// Points this old may be a minute apart.
const OLD: Duration = Duration::from_mins(55);

/// How far back charts reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    Hour,
    Day,
}

/// `?span`, beside what a page reads by itself.
#[derive(Debug, Default, Deserialize)]
struct SpanQuery {
    span: Option<String>,
}

impl Span {
    /// The span in the address of a page.
    pub(super) fn of(ask: &Ask) -> Result<Self> {
        match ask.query::<SpanQuery>()?.span.as_deref() {
            None | Some("1h") => Ok(Self::Hour),
            Some("24h") => Ok(Self::Day),
            Some(_) => Err(ErrorDetail::invalid("span must be 1h or 24h")),
        }
    }

    fn length(self) -> Duration {
        match self {
            Self::Hour => Duration::from_hours(1),
            Self::Day => Duration::from_hours(24),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Hour => "the last hour",
            Self::Day => "the last 24 hours",
        }
    }

    /// Links to the other spans of the page at this address.
    fn choice(self, page: &str) -> Markup {
        html! {
            nav.spans aria-label="Span of the charts" {
                @for (span, text, name) in [(Self::Hour, "1h", "last hour"), (Self::Day, "24h", "last 24 hours")] {
                    a.button href={ (page) "?span=" (text) } aria-current=[(span == self).then_some("true")] { (name) }
                }
            }
        }
    }
}

/// The charts of a queue, or of all together, with the choice of the span.
pub(super) async fn charts(ask: &Ask, queue: Option<&str>, now: Timestamp, sentence: &str) -> Result<Markup> {
    let span = Span::of(ask)?;
    let from = now.before(span.length());
    let name = queue.map(|queue| Name::new("queue", queue)).transpose()?;
    let series = ask.operations().series(name, Some(from)).await;
    Ok(drawn(&ask.viewer, queue, &series, (span, from, now), sentence))
}

fn drawn(
    viewer: &Viewer,
    queue: Option<&str>,
    series: &Series,
    (span, from, to): (Span, Timestamp, Timestamp),
    sentence: &str,
) -> Markup {
    let page = queue.map_or_else(|| viewer.link("/"), |queue| viewer.at("/queues", queue));
    // A server that has just started would fill only the right edge.
    let first = series.points.first().map_or(from, |point| point.at.max(from));
    let axis = Axis { from_ms: first.as_ms(), to_ms: to.as_ms() };
    let gaps = gaps(&series.points);
    let over = |what: &str| format!("{what} over {}", span.words());
    let chart = |of: &[Of], figure: Figure, label: &str| chart(series, &gaps, axis, (of, figure), label);
    html! {
        (span.choice(&page))
        div.two {
            section.panel aria-labelledby="backlog" {
                h2 id="backlog" { "Backlog" }
                (chart(&[("a", "to do", |point| Some(point.backlog as f64)), ("c", "dead", |point| Some(point.dead as f64))], tasks, &over("Backlog and dead tasks")))
                p.soft { (sentence) "." }
            }
            section.panel aria-labelledby="rates" {
                h2 id="rates" { "Tasks each second" }
                (chart(&[("a", "in", |point| point.in_per_s), ("b", "out", |point| point.out_per_s), ("c", "failed", |point| point.failed_per_s)], rate,
                    &over("Tasks in, out and failed each second")))
            }
        }
        (notes(series, &gaps, from, span))
    }
}

/// One curve of a chart: its class, its name, and how it is read from a point.
type Of = (&'static str, &'static str, fn(&SeriesPoint) -> Option<f64>);

/// How a value of a chart is told.
type Figure = fn(Option<f64>) -> String;

/// A number of tasks.
fn tasks(n: Option<f64>) -> String {
    n.map_or_else(|| "–".to_owned(), |n| count(n.round() as u64))
}

fn chart(
    series: &Series,
    gaps: &[(Timestamp, Timestamp)],
    axis: Axis,
    (of, figure): (&[Of], Figure),
    label: &str,
) -> Markup {
    if series.points.len() < 2 {
        return html! { p.soft { "Nothing is recorded yet. The chart begins with two points: in ten seconds." } };
    }
    let parts: Vec<Line> = of
        .iter()
        .map(|(class, _, value)| Line { class, parts: unbroken(&series.points, gaps, *value) })
        .collect();
    let most = parts.iter().flat_map(|line| line.parts.iter().flatten()).map(|(_, value)| *value);
    let most = most.fold(0.0, f64::max);
    if parts.iter().all(|line| line.parts.is_empty()) {
        return html! { p.soft { "Not known yet. Rates need half a minute of figures from workers that count what they do." } };
    }
    html! {
        (lines(&parts, axis, most, CHART, label))
        ul.legend {
            @for (class, name, value) in of {
                li { i class=(class) {} (name) " " (figure(series.points.last().and_then(value))) }
            }
            li { "top of the chart " (figure(Some(most))) }
        }
    }
}

/// The values of a curve, cut where nothing is recorded or the value is not known.
fn unbroken(
    points: &[SeriesPoint],
    gaps: &[(Timestamp, Timestamp)],
    value: fn(&SeriesPoint) -> Option<f64>,
) -> Vec<Vec<(i64, f64)>> {
    let mut parts: Vec<Vec<(i64, f64)>> = vec![Vec::new()];
    for point in points {
        let begins = gaps.iter().any(|(_, end)| *end == point.at);
        let known = value(point);
        if (begins || known.is_none()) && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(Vec::new());
        }
        if let (Some(known), Some(part)) = (known, parts.last_mut()) {
            part.push((point.at.as_ms(), known));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The times between two points for which nothing is recorded.
fn gaps(points: &[SeriesPoint]) -> Vec<(Timestamp, Timestamp)> {
    let Some(last) = points.last() else { return Vec::new() };
    let pairs = points.iter().zip(points.iter().skip(1));
    let is_gap = |from: Timestamp, to: Timestamp| {
        let most = if last.at.since(to) < OLD { GAP } else { OLD_GAP };
        to.since(from) > most
    };
    pairs.map(|(from, to)| (from.at, to.at)).filter(|(from, to)| is_gap(*from, *to)).collect()
}

/// What the charts cannot show, in words.
fn notes(series: &Series, gaps: &[(Timestamp, Timestamp)], from: Timestamp, span: Span) -> Markup {
    let first = series.points.first().map(|point| point.at);
    let begins = first.filter(|first| first.since(from) > OLD_GAP);
    html! {
        @if let Some(first) = begins {
            p.soft.small { "This server has recorded since " (time(first)) ": the history of " (span.words()) " is not whole. A server keeps it in memory." }
        }
        @if let Some((last_from, last_to)) = gaps.last() {
            p.soft.small {
                "Nothing is recorded where a curve is interrupted, the last time from " (time(*last_from)) " to " (time(*last_to))
                ": the store did not answer then."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_s: i64, in_per_s: Option<f64>) -> SeriesPoint {
        SeriesPoint {
            at: Timestamp::from_ms(at_s * 1_000),
            backlog: 1,
            at_least: false,
            ready: 1,
            running: 0,
            dead: 0,
            oldest_ready_ms: 0,
            in_per_s,
            out_per_s: None,
            failed_per_s: None,
        }
    }

    #[test]
    fn a_pause_in_the_record_is_a_gap() {
        let day = 24 * 3_600;
        let times = [0, 60, 125, 600, day - 20, day - 15, day - 10, day - 5, day];
        let points: Vec<_> = times.into_iter().map(|at| point(at, None)).collect();
        let found: Vec<_> =
            gaps(&points).iter().map(|(from, to)| (from.as_ms() / 1_000, to.as_ms() / 1_000)).collect();
        assert_eq!(found, [(125, 600), (600, day - 20)]);
        let fresh = [0, 5, 60, 65].map(|at| point(at, None));
        assert_eq!(gaps(&fresh).len(), 1, "55 s without a point in the last hour");
        assert_eq!(gaps(&[]), []);
    }

    #[test]
    fn a_curve_is_cut_at_a_gap_and_where_nothing_is_known() {
        let points = [
            point(0, None),
            point(5, Some(1.0)),
            point(10, Some(2.0)),
            point(15, None),
            point(20, Some(3.0)),
            point(120, Some(4.0)),
        ];
        let parts = unbroken(&points, &gaps(&points), |point| point.in_per_s);
        let values: Vec<Vec<f64>> =
            parts.iter().map(|part| part.iter().map(|(_, value)| *value).collect()).collect();
        assert_eq!(values, [vec![1.0, 2.0], vec![3.0], vec![4.0]]);
    }
}
