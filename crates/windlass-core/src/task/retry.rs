//! How long to wait before the next attempt.

use std::time::Duration;

use crate::id::TaskId;

/// Exponential backoff: `base × 2ⁿ`, at most `max`, spread by `jitter_percent` either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Delay after the first failed attempt.
    pub base: Duration,
    /// Longest delay.
    pub max: Duration,
    /// Spread around the delay, in per cent of it, so that tasks that failed together do not run again
    /// together.
    pub jitter_percent: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_mins(10), jitter_percent: 20 }
    }
}

impl RetryPolicy {
    /// The policy as stores keep it: base and longest delay in nanoseconds, spread in per cent.
    pub fn to_stored(self) -> String {
        format!("{} {} {}", self.base.as_nanos(), self.max.as_nanos(), self.jitter_percent)
    }

    /// The policy of a stored text.
    pub fn from_stored(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut nanos = || -> Option<Duration> { Some(Duration::from_nanos(parts.next()?.parse().ok()?)) };
        let (base, max) = (nanos()?, nanos()?);
        Some(Self { base, max, jitter_percent: parts.next()?.parse().ok()? })
    }

    /// The delay after attempt number `attempt` (from 1) of this task has failed.
    ///
    /// The spread is computed from the task and the attempt, not from a random source: the same failure
    /// always waits the same time, and two tasks wait different times.
    pub fn delay(&self, task: TaskId, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(40);
        let delay =
            self.base.saturating_mul(1_u32.checked_shl(doublings.min(31)).unwrap_or(u32::MAX)).min(self.max);
        let spread = u128::from(self.jitter_percent.min(100)) * 2;
        let place = u128::from(mix(task.raw() as u64 ^ (u64::from(attempt) << 48)) % 10_001);
        let nanos = delay.as_nanos();
        let low = nanos * (100 - u128::from(self.jitter_percent.min(100))) / 100;
        let with_jitter = low + nanos * spread * place / (100 * 10_000);
        Duration::from_nanos(u64::try_from(with_jitter).unwrap_or(u64::MAX))
    }
}

/// Mixes 64 bits well (the finaliser of splitmix64).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_within_the_spread() {
        let policy = RetryPolicy::default();
        for task in 0..200 {
            let id = TaskId::from_raw(task);
            for (attempt, seconds) in
                [(1, 1.0), (2, 2.0), (5, 16.0), (10, 512.0), (11, 600.0), (4_000_000, 600.0)]
            {
                let delay = policy.delay(id, attempt).as_secs_f64();
                assert!((seconds * 0.8..=seconds * 1.2).contains(&delay), "{attempt}: {delay}");
            }
        }
    }

    #[test]
    fn tasks_that_fail_together_do_not_return_together() {
        let policy = RetryPolicy::default();
        let delays: std::collections::BTreeSet<_> =
            (0..100).map(|task| policy.delay(TaskId::from_raw(task), 1)).collect();
        assert!(delays.len() > 90);
    }
}
