//! Rates from counters that only rise. Two readings give one rate, and the rates of the last minute give
//! a sparkline.

use std::{collections::VecDeque, time::Duration};

/// Rates kept: those of a minute, at one reading a second.
const KEPT: usize = 60;
/// The characters of a sparkline, by height.
const LETTERS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One counter over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rate {
    last: Option<(u64, Duration)>,
    kept: VecDeque<f64>,
}

impl Rate {
    /// Notes a reading of the counter at a time.
    pub fn note(&mut self, count: u64, at: Duration) {
        if let Some((before, since)) = self.last
            && let Some(risen) = count.checked_sub(before)
            && let Some(passed) = at.checked_sub(since).filter(|passed| !passed.is_zero())
        {
            self.push(risen as f64 / passed.as_secs_f64());
        }
        // A counter that fell belongs to a restarted server. The next reading gives a rate again.
        self.last = Some((count, at));
    }

    /// Adds a rate that is known.
    pub fn push(&mut self, per_s: f64) {
        self.kept.push_back(per_s);
        self.kept.drain(..self.kept.len().saturating_sub(KEPT));
    }

    /// The last rate, once there are two readings.
    pub fn now(&self) -> Option<f64> {
        self.kept.back().copied()
    }

    /// The last rates as characters, the newest at the right. The highest rate has the full height.
    pub fn line(&self, width: usize) -> String {
        let shown: Vec<f64> = self.kept.iter().copied().skip(self.kept.len().saturating_sub(width)).collect();
        let most = shown.iter().copied().fold(0.0, f64::max);
        let letter = |rate: &f64| {
            let height = if most > 0.0 { (rate / most * (LETTERS.len() - 1) as f64).round() } else { 0.0 };
            LETTERS.get(height as usize).copied().unwrap_or(' ')
        };
        let line: String = shown.iter().map(letter).collect();
        format!("{line:>width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(counts: &[u64]) -> Rate {
        let mut rate = Rate::default();
        for (second, count) in counts.iter().enumerate() {
            rate.note(*count, Duration::from_secs(second as u64 * 2));
        }
        rate
    }

    #[test]
    fn two_readings_make_a_rate_and_one_makes_none() {
        assert_eq!(after(&[]).now(), None);
        assert_eq!(after(&[7]).now(), None);
        assert_eq!(after(&[7, 17]).now(), Some(5.0));
    }

    #[test]
    fn a_restarted_server_makes_no_negative_rate() {
        assert_eq!(after(&[100, 120, 3]).now(), Some(10.0));
        assert_eq!(after(&[100, 120, 3, 5]).now(), Some(1.0));
    }

    #[test]
    fn the_highest_rate_has_the_full_height() {
        let rate = after(&[0, 0, 7, 14, 28]);
        assert_eq!(rate.line(6), "  ▁▅▅█");
        assert_eq!(rate.line(2), "▅█");
        assert_eq!(after(&[5, 5, 5]).line(3), " ▁▁");
        let long: Vec<u64> = (0..200).collect();
        assert_eq!(after(&long).line(500).trim_start().chars().count(), KEPT);
    }
}
