//! How many tasks may run at once: never more than memory has room for. Each limit has a reason that users
//! see.
//!
//! ```text
//! allowed = slots × factor          factor = start × memory × latency
//! demand  = min(allowed − in flight, claim batch)
//!
//! start     0.1 ─► doubles per completed round ─► 1
//! memory    above high: half, again at every sample ─► between: stays ─► below high − 5 %: small steps up to 1
//!           above 95 %: nothing is claimed while anything runs
//! latency   p99 above its threshold: 0.7, otherwise 1
//! ```
//!
//! Everything here is a function of its arguments. The runtime reads the memory and the clocks.

mod gathering;
mod state;

use std::fmt;

pub use gathering::{GATHER_MAX, GATHER_QUIET, Gathering};
pub use state::{Admission, MemorySample, Seen};

/// The default share of memory in use above which fewer tasks may run.
pub const MEMORY_HIGH: f64 = 0.8;
/// How far below that share the memory in use must fall before more tasks may run again.
pub const HYSTERESIS: f64 = 0.05;
/// The share of memory in use above which no task starts while another one runs.
pub const MEMORY_STOP: f64 = 0.95;
/// The factor for slow tasks: only this share of the slots may be used.
pub const LATENCY_FACTOR: f64 = 0.7;
/// The share of its slots that a new worker starts with.
pub const START_SHARE: f64 = 0.1;
/// Workers with fewer slots neither start slowly nor gather, because a tenth of their slots is less than one.
pub const SLOTS_MIN: u32 = 10;

/// The share of memory that messages may take that were fetched before a handler was free for them.
pub const AHEAD_SHARE: f64 = 0.1;

/// Why fewer tasks may run than there are slots. Several reasons may hold at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each may hold together with any other: they are not states of one machine"
)]
pub struct Reasons {
    /// The worker is new and has not shown yet what its tasks cost.
    pub start: bool,
    /// Memory is, or was until lately, above the share at which less may run.
    pub memory: bool,
    /// Memory is so short that nothing starts while anything runs.
    pub memory_stop: bool,
    /// Tasks take longer than they should.
    pub latency: bool,
}

impl Reasons {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The reasons by name with `+` between them; empty if there is none.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.start, "start"),
            (self.memory && !self.memory_stop, "memory"),
            (self.memory_stop, "memory_stop"),
            (self.latency, "latency"),
        ];
        let mut separator = "";
        for (_, name) in names.iter().filter(|(holds, _)| *holds) {
            write!(f, "{separator}{name}")?;
            separator = "+";
        }
        Ok(())
    }
}

/// How many tasks may run on `slots` slots: at least one, so that a worker never stops entirely.
pub fn allowed(slots: u32, factor: f64) -> u32 {
    // Round down: under pressure fewer is right. The tiny addition keeps 10 × 0.3 at 3.
    let share = (f64::from(slots) * factor.clamp(0.0, 1.0) + 1e-9).floor();
    (share as u32).clamp(1, slots.max(1))
}

/// How many tasks the next claim may bring.
pub fn demand(allowed: u32, in_flight: u32, claim_batch: u32) -> u32 {
    allowed.saturating_sub(in_flight).min(claim_batch)
}

/// Whether admission control makes the claim smaller. True also while some slots are free: with short tasks, a
/// few have always just ended.
pub fn is_held_back(wanted: usize, free: usize, allowed: usize, slots: usize) -> bool {
    wanted > free && allowed < slots
}

/// How many messages of this mean size may be fetched ahead so that they take at most [`AHEAD_SHARE`] of the
/// memory: at least one, at most as many as are wanted.
pub fn ahead(wanted: u16, mean_bytes: u64, memory_limit: u64) -> u16 {
    let share = (memory_limit as f64 * AHEAD_SHARE) as u64;
    let fitting = share.checked_div(mean_bytes).unwrap_or(u64::MAX);
    u16::try_from(fitting).unwrap_or(u16::MAX).clamp(1, wanted.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_slots_are_rounded_down_and_at_least_one() {
        for (slots, factor, expected) in [
            (1, 1.0, 1),
            (1, 0.5, 1),
            (1, 0.0, 1),
            (9, 1.0, 9),
            (9, 0.5, 4),
            (9, 0.7, 6),
            (9, 0.1, 1),
            (9, 0.35, 3),
            (10, 0.3, 3),
            (10, 0.7, 7),
            (1_000, 0.1, 100),
            (1_000, 0.35, 350),
            (1_000, 0.000_01, 1),
            (100_000, 1.0, 100_000),
            (3, 7.0, 3),
            (3, f64::NAN, 1),
        ] {
            assert_eq!(allowed(slots, factor), expected, "{slots} × {factor}");
        }
    }

    #[test]
    fn a_claim_asks_only_for_tasks_that_may_start() {
        for (allowed, in_flight, batch, expected) in [
            (100, 0, 50, 50),
            (100, 70, 50, 30),
            (100, 100, 50, 0),
            (50, 100, 50, 0),
            (1, 0, 50, 1),
            (1, 1, 50, 0),
        ] {
            assert_eq!(demand(allowed, in_flight, batch), expected, "{allowed} {in_flight} {batch}");
        }
    }

    #[test]
    fn a_claim_is_held_back_if_admission_makes_it_smaller() {
        for (wanted, free, allowed, slots, expected) in [
            (50, 0, 100, 1_000, true),
            (200, 60, 100, 1_000, true),
            (50, 60, 100, 1_000, false),
            (60, 60, 100, 1_000, false),
            (200, 60, 1_000, 1_000, false),
            (50, 0, 9, 9, false),
        ] {
            assert_eq!(
                is_held_back(wanted, free, allowed, slots),
                expected,
                "{wanted} wanted, {free} free of {allowed} of {slots}"
            );
        }
    }

    #[test]
    fn messages_fetched_ahead_take_at_most_a_tenth_of_memory() {
        const MB: u64 = 1_000_000;
        for (wanted, mean_bytes, limit, expected) in [
            (500, 0, 100 * MB, 500),
            (500, 1_000, 100 * MB, 500),
            (500, 20_000, 100 * MB, 500),
            (500, 20_001, 100 * MB, 499),
            (500, MB, 100 * MB, 10),
            (500, 50 * MB, 100 * MB, 1),
            (1, 50 * MB, 100 * MB, 1),
            (0, 1, 100 * MB, 1),
            (1_000, 1, 0, 1),
        ] {
            assert_eq!(ahead(wanted, mean_bytes, limit), expected, "{wanted} of {mean_bytes} in {limit}");
        }
    }

    #[test]
    fn reasons_are_shown_by_name() {
        let all = Reasons { start: true, memory: true, memory_stop: false, latency: true };
        assert_eq!(all.to_string(), "start+memory+latency");
        assert_eq!(
            Reasons { memory: true, memory_stop: true, ..Reasons::default() }.to_string(),
            "memory_stop"
        );
        assert!(
            Reasons::default().to_string().is_empty() && Reasons::default().is_empty() && !all.is_empty()
        );
    }
}
