//! The series of `windlass-bench pressure` as a plot over time: tasks that may run, tasks that run, and
//! tasks per claim.

use std::fmt::Write as _;

use super::Point;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
/// Space for the numbers beside the axes.
const LEFT: f64 = 48.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 34.0;
const RIGHT: f64 = 16.0;
/// Horizontal lines.
const GRID: u32 = 4;

/// A name, a colour, and points of seconds and values.
type Line = (&'static str, &'static str, Vec<(f64, f64)>);

/// The plot as an SVG file that is readable on light and dark backgrounds.
pub(super) fn svg(series: &[Point], slow: (f64, f64)) -> String {
    let end = series.last().map_or(1.0, |point| point.second).max(1.0);
    let most = series.iter().map(|point| point.allowed.max(point.running)).max().unwrap_or(1).max(1);
    let x = |second: f64| LEFT + (WIDTH - LEFT - RIGHT) * second / end;
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / f64::from(most);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <rect x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#f6e3d4\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#8a4b1f\">handlers ten times as slow</text>\n",
        x(slow.0),
        x(slow.1) - x(slow.0),
        HEIGHT - TOP - BOTTOM,
        x(slow.0) + 4.0,
        TOP + 14.0,
    );
    for line in 0..=GRID {
        let value = f64::from(most) * f64::from(line) / f64::from(GRID);
        let (at, second) = (y(value), end * f64::from(line) / f64::from(GRID));
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444444\">{value:.0}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#444444\">{second:.0} s</text>\n",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            x(second),
            HEIGHT - BOTTOM + 18.0,
        );
    }
    let allowed = series.iter().map(|point| (point.second, f64::from(point.allowed)));
    let running = series.iter().map(|point| (point.second, f64::from(point.running)));
    let claims = series.iter().filter_map(|point| Some((point.second, point.claim_size?)));
    let lines: [Line; 3] = [
        ("may run", "#1f5fa8", allowed.collect()),
        ("runs", "#7fb2e5", running.collect()),
        ("tasks per claim", "#2f8f4e", claims.collect()),
    ];
    for (place, (name, colour, points)) in lines.iter().enumerate() {
        let points: Vec<String> =
            points.iter().map(|(second, value)| format!("{:.1},{:.1}", x(*second), y(*value))).collect();
        let at = LEFT + 120.0 * place as f64;
        let _ = write!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" points=\"{}\"/>\n\
             <rect x=\"{at:.1}\" y=\"12\" width=\"12\" height=\"4\" fill=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"18\" fill=\"#222222\">{name}</text>\n",
            points.join(" "),
            at + 18.0,
        );
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_inside_the_picture() {
        let point = |second, allowed| Point {
            second,
            allowed,
            running: allowed / 2,
            claim_size: (allowed > 50).then_some(7.0),
            reason: String::new(),
        };
        let text = svg(&[point(0.25, 100), point(1.0, 70), point(2.0, 40), point(4.0, 100)], (1.0, 2.0));
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n") && !text.contains("NaN"));
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("<polyline")).collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            for pair in points.split(' ') {
                let (x, y) = pair.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(
                    (LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y),
                    "{pair}"
                );
            }
        }
        assert!(svg(&[], (0.0, 1.0)).contains("</svg>"));
    }
}
