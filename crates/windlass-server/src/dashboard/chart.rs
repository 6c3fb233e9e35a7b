//! Drawings: bars, time lines and curves as SVG, so that no script draws and no inline style is needed.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::parts::Tone;

/// Width of a drawing in its own units; the browser stretches it.
const WIDTH: f64 = 1_000.0;

/// How much of something is in use.
pub(super) fn bar(is: u64, of: u64, label: &str) -> Markup {
    let share = if of == 0 { 0.0 } else { (is as f64 / of as f64).min(1.0) };
    let class = if of > 0 && is >= of { "bar full" } else { "bar" };
    html! {
        svg class=(class) viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.of x="0" y="0" width="1000" height="12" {}
            rect.is x="0" y="0" width=(whole(share * WIDTH)) height="12" {}
        }
    }
}

/// A share of something that should not become short, such as memory. From nine tenths on it is shown as scarce.
pub(super) fn share(is: f64, label: &str) -> Markup {
    let class = if is >= 0.9 { "bar short" } else { "bar" };
    html! {
        svg class=(class) viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.of x="0" y="0" width="1000" height="12" {}
            rect.is x="0" y="0" width=(whole(is.clamp(0.0, 1.0) * WIDTH)) height="12" {}
        }
    }
}

/// One stretch of a time line.
pub(super) struct Stretch {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
    pub(super) tone: Tone,
    pub(super) title: String,
}

/// Stretches on a line from a first to a last time.
pub(super) fn time_line((first, last): (i64, i64), stretches: &[Stretch], label: &str) -> Markup {
    let whole_ms = last.saturating_sub(first).max(1) as f64;
    let place = |ms: i64| (ms.saturating_sub(first) as f64 / whole_ms).clamp(0.0, 1.0) * WIDTH;
    html! {
        svg.line viewBox="0 0 1000 22" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.of x="0" y="8" width="1000" height="6" {}
            @for stretch in stretches {
                @let (from, to) = (place(stretch.from_ms), place(stretch.to_ms));
                rect class=(stretch.tone.class()) x=(whole(from)) y="2" width=(whole((to - from).max(4.0))) height="18" {
                    title { (stretch.title) }
                }
            }
        }
    }
}

/// Counts over time as small columns.
pub(super) fn columns(counts: &[u64], label: &str) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = 100.0 / counts.len().max(1) as f64;
    html! {
        svg.spark viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=(label) {
            @for (place, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                @let height = (*n as f64 / most * 24.0).max(2.0);
                rect x=(tenth(place as f64 * width)) y=(tenth(24.0 - height)) width=(tenth((width - 0.5).max(0.5))) height=(tenth(height)) {}
            }
        }
    }
}

/// The times at the left and the right edge of a drawing, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
}

/// One curve over time: a class of colour, and its unbroken parts.
pub(super) struct Line {
    pub(super) class: &'static str,
    pub(super) parts: Vec<Vec<(i64, f64)>>,
}

/// Curves over time, from zero to `most`.
pub(super) fn lines(
    lines: &[Line],
    axis: Axis,
    most: f64,
    (width, height): (u32, u32),
    label: &str,
) -> Markup {
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (height) } preserveAspectRatio="none" role="img" aria-label=(label) {
            @for part in 1..4 { line.grid-line x1="0" x2=(width) y1=(height * part / 4) y2=(height * part / 4) {} }
            @for line in lines {
                @for part in &line.parts { polyline class=(line.class) points=(path(part, axis, most, (width, height))) {} }
            }
        }
    }
}

/// Columns of a drawing: points in the same column become one, so that a day is not two thousand points.
const COLUMNS: i64 = 240;

fn path(part: &[(i64, f64)], axis: Axis, most: f64, (width, height): (u32, u32)) -> String {
    let whole_ms = axis.to_ms.saturating_sub(axis.from_ms).max(1);
    let column = |at: i64| at.saturating_sub(axis.from_ms).saturating_mul(COLUMNS) / whole_ms;
    let mut path = String::new();
    for points in part.chunk_by(|(one, _), (other, _)| column(*one) == column(*other)) {
        let count = points.len() as f64;
        let at = points.iter().map(|(at, _)| at.saturating_sub(axis.from_ms) as f64).sum::<f64>() / count;
        let value = points.iter().map(|(_, value)| *value).sum::<f64>() / count;
        let x = (at / whole_ms as f64).clamp(0.0, 1.0) * f64::from(width);
        let y = tenth((1.0 - value / most.max(1e-9)) * (f64::from(height) - 2.0) + 1.0);
        // A line of one point would not be drawn. Writing to a string does not fail.
        if part.len() == 1 {
            let _ = write!(path, "{},{y} ", tenth(x - 1.0));
        }
        let _ = write!(path, "{},{y} ", tenth(x));
    }
    path
}

/// One small curve of points at places from 0 to 1.
pub(super) fn spark(values: &[(f64, u64)], label: &str) -> Markup {
    let most = values.iter().map(|(_, value)| *value).max().unwrap_or(0).max(1) as f64;
    let mut points = String::new();
    for (place, value) in values {
        // Writing to a string does not fail.
        let _ =
            write!(points, "{},{} ", tenth(place * 100.0), tenth((1.0 - *value as f64 / most) * 22.0 + 1.0));
    }
    html! {
        svg.spark viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=(label) {
            polyline.a points=(points) {}
        }
    }
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_its_frame() {
        assert!(bar(5, 10, "half").into_string().contains("width=\"500\""));
        let over = bar(30, 10, "over").into_string();
        assert!(over.contains("bar full") && !over.contains("3000"), "{over}");
        assert!(bar(1, 0, "no limit").into_string().contains("width=\"0\""));
    }

    #[test]
    fn a_time_line_keeps_its_stretches_inside() {
        let stretch = Stretch { from_ms: -50, to_ms: 500, tone: Tone::Good, title: "<b>".into() };
        let line = time_line((0, 100), &[stretch], "attempts").into_string();
        assert!(
            line.contains("x=\"0\"") && line.contains("width=\"1000\"") && line.contains("&lt;b&gt;"),
            "{line}"
        );
    }

    #[test]
    fn a_small_curve_has_its_points_at_their_times() {
        let drawn = spark(&[(0.0, 0), (0.9, 5), (1.0, 10)], "backlog").into_string();
        assert!(drawn.contains("points=\"0.0,23.0 90.0,12.0 100.0,1.0 \""), "{drawn}");
    }

    #[test]
    fn a_line_stands_at_its_times_and_is_thinned() {
        let axis = Axis { from_ms: 0, to_ms: 1_000 };
        assert_eq!(path(&[(500, 0.0), (1_000, 10.0)], axis, 10.0, (100, 22)), "50.0,21.0 100.0,1.0 ");
        assert_eq!(path(&[(500, 5.0)], axis, 10.0, (100, 22)), "49.0,11.0 50.0,11.0 ");
        let many: Vec<_> = (0..10_000).map(|at| (at / 10, 1.0)).collect();
        assert_eq!(path(&many, axis, 1.0, (720, 140)).split_whitespace().count(), 240);
        let one = Line { class: "a", parts: vec![vec![(0, 1.0)], vec![(900, 1.0), (950, 1.0)]] };
        let drawn = lines(&[one], axis, 1.0, (100, 22), "<b>").into_string();
        assert!(drawn.matches("<polyline").count() == 2 && drawn.contains("&lt;b&gt;"), "{drawn}");
    }
}
