//! The measurements of a long run, and whether they still grow at its end.

use serde_json::{Value, json};

use crate::rig::round;

/// One measurement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) minute: f64,
    pub(super) rss_mb: f64,
    pub(super) open_files: f64,
    pub(super) threads: f64,
    pub(super) async_tasks: f64,
    pub(super) store_mb: f64,
    pub(super) wal_mb: f64,
}

/// A figure by name, and the least mean that its growth is divided by. Without that, chance would count
/// as growth: a dozen open files can vary by two, and the peak of a log depends on when it is
/// checkpointed.
type Figure = (&'static str, fn(&Sample) -> f64, f64);

/// The figures that must not grow.
const FIGURES: [Figure; 5] = [
    ("rss", |sample| sample.rss_mb, 0.0),
    ("open_files", |sample| sample.open_files, 100.0),
    ("async_tasks", |sample| sample.async_tasks, 100.0),
    ("store", |sample| sample.store_mb, 0.0),
    ("wal", |sample| sample.wal_mb, 64.0),
];

impl Sample {
    pub(super) fn to_json(self) -> Value {
        json!({
            "minute": round(self.minute, 2),
            "rss_mb": round(self.rss_mb, 1),
            "open_files": self.open_files,
            "threads": self.threads,
            "async_tasks": self.async_tasks,
            "store_mb": round(self.store_mb, 1),
            "wal_mb": round(self.wal_mb, 1),
        })
    }
}

/// The growth of each figure over the last quarter of the run, as a share of its mean there.
pub(super) fn slopes(samples: &[Sample]) -> Value {
    let from = samples.len() - samples.len().div_ceil(4).max(3).min(samples.len());
    let last = samples.get(from..).unwrap_or_default();
    let slopes = FIGURES.iter().map(|(name, of, floor)| {
        let points: Vec<(f64, f64)> = last.iter().map(|sample| (sample.minute, of(sample))).collect();
        ((*name).to_owned(), json!(round(growth(&points, *floor), 4)))
    });
    Value::Object(slopes.collect())
}

/// The rise of the best-fitting line from the first point to the last, divided by the mean or by `floor`
/// if that is larger.
fn growth(points: &[(f64, f64)], floor: f64) -> f64 {
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|(x, _)| x).sum::<f64>() / n, points.iter().map(|(_, y)| y).sum::<f64>() / n);
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let both: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let length = points.last().map_or(0.0, |(x, _)| *x) - points.first().map_or(0.0, |(x, _)| *x);
    let mean = mean_y.max(floor);
    if spread > 0.0 && mean > 0.0 { both / spread * length / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_rise_of_the_line_over_the_mean() {
        assert!((growth(&[(0.0, 10.0), (1.0, 10.0), (2.0, 10.0)], 0.0)).abs() < 1e-9);
        assert!((growth(&[(0.0, 9.0), (1.0, 10.0), (2.0, 11.0)], 0.0) - 0.2).abs() < 1e-9);
        let few = growth(&[(0.0, 9.0), (1.0, 10.0), (2.0, 11.0)], 100.0);
        assert!((few - 0.02).abs() < 1e-9, "two more of a few are not many");
        assert!(growth(&[(0.0, 11.0), (1.0, 10.0), (2.0, 9.0)], 0.0) < 0.0);
        assert!(growth(&[(0.0, 0.0), (1.0, 0.0)], 0.0).abs() < 1e-9, "what is not there does not grow");
    }

    #[test]
    fn only_the_last_quarter_counts() {
        let sample =
            |minute: u32, rss_mb: f64| Sample { minute: f64::from(minute), rss_mb, ..Sample::default() };
        let early: Vec<Sample> = (0..9).map(|minute| sample(minute, f64::from(minute))).collect();
        let late = (9..12).map(|minute| sample(minute, 50.0));
        let slopes = slopes(&early.into_iter().chain(late).collect::<Vec<_>>());
        assert_eq!(slopes.get("rss"), Some(&json!(0.0)));
    }
}
