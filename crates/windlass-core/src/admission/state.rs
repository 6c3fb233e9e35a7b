//! The state of admission control between two samples, and how a sample changes it.

use std::time::Duration;

use super::{HYSTERESIS, LATENCY_FACTOR, MEMORY_HIGH, MEMORY_STOP, Reasons, SLOTS_MIN, START_SHARE, allowed};

/// With this much free memory for each slot, a new worker doubles its share at every sample, before its first
/// tasks have ended. Four times the largest payload that is taken by default.
const AMPLE_BYTES_PER_SLOT: u64 = 4 << 20;
/// The least share of slots that memory pressure leaves: one slot of the largest worker.
const LEAST: f64 = 1e-5;
/// A step of recovery, as a share of the slots that may be used now …
const STEP: f64 = 0.1;
/// … and at least this share of all slots.
const STEP_MIN: f64 = 0.002;
/// Memory use has fallen if the share is lower by this much.
const FALLEN: f64 = 0.005;
/// Memory use has grown if the share is higher by this much.
const GROWN: f64 = 0.02;
/// Some tasks run for hours, so a round must be able to complete without an end. It counts as completed when
/// every allowed slot was in use for this long while memory did not grow: by then the memory of the tasks
/// shows.
const STEADY_FOR: Duration = Duration::from_secs(1);
/// After this many samples without a fall, the memory in use is not held by tasks.
const FLAT_SAMPLES: u32 = 4;

/// A reading of memory against the limit that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySample {
    /// Bytes in use, without what the kernel gives back when asked.
    pub used: u64,
    /// Bytes that may be used.
    pub limit: u64,
}

impl MemorySample {
    /// The share in use: 1 is all.
    pub fn usage(self) -> f64 {
        if self.limit == 0 { 0.0 } else { self.used as f64 / self.limit as f64 }
    }
}

/// What a sample contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Memory, if it can be read.
    pub memory: Option<MemorySample>,
    /// Slots in all.
    pub slots: u32,
    /// Slots in use.
    pub in_flight: u32,
    /// Slots in use and all slots of the busiest feeder, if there are several. An idle feeder must not make a
    /// busy one look idle.
    pub busiest: Option<(u32, u32)>,
    /// Tasks that have ended since the process started.
    pub ended: u64,
    /// Whether the p99 of a kind is above its threshold.
    pub is_slow: bool,
    /// Time since the sample before.
    pub passed: Duration,
}

impl Seen {
    fn busiest(&self) -> (u32, u32) {
        self.busiest.unwrap_or((self.in_flight, self.slots))
    }

    fn busy(&self) -> f64 {
        let (in_use, slots) = self.busiest();
        f64::from(in_use) / f64::from(slots.max(1))
    }
}

/// The state of admission control.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    memory_high: f64,
    start: Start,
    memory: f64,
    /// The shortage, from the time memory use rose above `memory_high` until it is well below.
    shortage: Option<Shortage>,
    stopped: bool,
    latency: f64,
}

/// A shortage of memory. The hazard: memory of ended tasks may never come back, because allocators keep it
/// and other processes on the host may use it. A worker that waits for it with one task at a time may wait
/// for ever. So once memory has been flat for a while, half of the tasks that ran when the shortage began may
/// run again, as long as memory does not grow.
#[derive(Debug, Clone, PartialEq)]
struct Shortage {
    /// The share of the slots in use when the shortage began, or when memory last grew.
    ran: f64,
    /// The lowest memory use since then, as a share.
    least: f64,
    /// Samples without a fall of memory use, counted while fewer tasks cannot be allowed.
    flat: u32,
    /// Whether running fewer tasks has stopped helping.
    is_settled: bool,
}

/// The slow start. It lasts until the memory cost of the tasks is known.
#[derive(Debug, Clone, PartialEq)]
struct Start {
    /// The share of the slots that may be used; 1 when the slow start is over.
    share: f64,
    /// Tasks that had ended when the round began.
    ended_before: u64,
    /// Memory in use before the first task.
    idle_used: Option<u64>,
    /// Memory in use and slots in use, from the sample of this round with the most slots in use.
    fullest: (u64, u32),
    /// How long every allowed slot has been in use, and the share of memory in use when that began.
    steady: Option<(Duration, f64)>,
}

impl Admission {
    /// The state of a process that starts. `memory_high` is the share above which less may run.
    pub fn new(memory_high: f64) -> Self {
        let start =
            Start { share: START_SHARE, ended_before: 0, idle_used: None, fullest: (0, 0), steady: None };
        Self { memory_high, start, memory: 1.0, shortage: None, stopped: false, latency: 1.0 }
    }

    /// The share of its slots that a worker with this many slots may use.
    pub fn factor(&self, slots: u32) -> f64 {
        let start = if slots < SLOTS_MIN { 1.0 } else { self.start.share };
        start * self.memory * self.latency
    }

    /// How many tasks may run on this many slots. Above [`MEMORY_STOP`] it is one: that task starts only when
    /// no other runs.
    pub fn allowed(&self, slots: u32) -> u32 {
        if self.stopped { 1 } else { allowed(slots, self.factor(slots)) }
    }

    /// Why a worker with this many slots may not use all of them.
    pub fn reasons(&self, slots: u32) -> Reasons {
        Reasons {
            start: slots >= SLOTS_MIN && self.is_starting(),
            memory: self.memory < 1.0,
            memory_stop: self.stopped,
            latency: self.latency < 1.0,
        }
    }

    /// Whether the slow start is still going on.
    pub fn is_starting(&self) -> bool {
        self.start.share < 1.0
    }

    /// Takes a sample into account.
    pub fn sample(&mut self, seen: &Seen) {
        self.latency = if seen.is_slow { LATENCY_FACTOR } else { 1.0 };
        let usage = seen.memory.map_or(0.0, MemorySample::usage);
        self.stopped = usage > MEMORY_STOP.max(self.memory_high);
        if usage > self.memory_high || (self.shortage.is_some() && usage >= self.memory_high - HYSTERESIS) {
            self.endure(seen, usage);
            return;
        }
        self.shortage = None;
        if self.is_starting() {
            self.start_on(seen);
        } else if usage < self.memory_high - HYSTERESIS {
            self.recover(seen, 1.0);
        }
    }

    /// Memory is short, or it was and is not yet well below `memory_high`.
    fn endure(&mut self, seen: &Seen, usage: f64) {
        let ran = seen.busy().max(START_SHARE);
        let mut shortage =
            self.shortage.take().unwrap_or(Shortage { ran, least: usage, flat: 0, is_settled: false });
        // Count flat samples only where fewer tasks cannot be allowed.
        let is_last_resort = usage <= self.memory_high || allowed(seen.slots, self.factor(seen.slots)) == 1;
        shortage.note(usage, ran, is_last_resort);
        if shortage.is_settled && !self.stopped {
            self.recover(seen, shortage.ran / 2.0);
        } else if usage > self.memory_high {
            self.press(seen);
        }
        self.shortage = Some(shortage);
    }

    /// Memory is short: halves the share, to at most the share in use. Half of the slots would change nothing
    /// where few of them are in use.
    fn press(&mut self, seen: &Seen) {
        let now = self.start.share * self.memory;
        self.memory = (now / 2.0).min(seen.busy().max(START_SHARE)).max(LEAST);
        // Running tasks show their cost now: the slow start is over.
        self.start.share = 1.0;
    }

    /// One step up, to at most `most`, if the allowed slots were used: unused slots show nothing about
    /// memory. Ample memory needs no such proof.
    fn recover(&mut self, seen: &Seen, most: f64) {
        if self.memory >= most {
            return;
        }
        let is_used = seen.busy() >= self.factor(seen.slots) / 2.0;
        if is_used || self.is_ample(seen) {
            self.memory = (self.memory + (self.memory * STEP).max(STEP_MIN)).min(most);
        }
    }

    /// Continues the slow start. The share doubles after a round: as many ended tasks as were allowed, or a
    /// while with every allowed slot in use. With ample memory it doubles at every sample.
    fn start_on(&mut self, seen: &Seen) {
        let start = &mut self.start;
        if let Some(memory) = seen.memory {
            start.idle_used.get_or_insert(memory.used);
            // Of two samples with equally many tasks, take the one with more memory in use.
            let (used, running) = start.fullest;
            if (seen.in_flight, memory.used) > (running, used) {
                start.fullest = (memory.used, seen.in_flight);
            }
        }
        let round = u64::from(self.allowed(seen.slots));
        let is_ample = self.is_ample(seen);
        let (in_use, slots) = seen.busiest();
        let is_all_used = in_use >= self.allowed(slots);
        let start = &mut self.start;
        let is_steady = start.is_steady(seen, is_all_used);
        if !is_ample && !is_steady && seen.ended.saturating_sub(start.ended_before) < round {
            return;
        }
        let doubled = (start.share * 2.0).min(1.0);
        let next = if is_ample { doubled } else { doubled.min(start.room(seen, self.memory_high)) };
        start.ended_before = seen.ended;
        start.fullest = (0, 0);
        start.steady = None;
        if next > start.share {
            start.share = next;
        } else {
            // Memory has no room for more tasks of this size. From here on, memory pressure alone decides.
            self.memory = start.share;
            start.share = 1.0;
        }
    }

    /// Whether memory has room for every slot at a generous cost per task.
    fn is_ample(&self, seen: &Seen) -> bool {
        let needed = AMPLE_BYTES_PER_SLOT.saturating_mul(u64::from(seen.slots)) as f64;
        seen.memory
            .is_some_and(|memory| memory.limit as f64 * self.memory_high - memory.used as f64 >= needed)
    }
}

impl Shortage {
    /// Notes the memory in use now. If it grew, half of the tasks that ran before were too many.
    fn note(&mut self, usage: f64, ran: f64, is_last_resort: bool) {
        if usage > self.least + GROWN {
            *self = Self { ran: ran.min(self.ran), least: usage, flat: 0, is_settled: false };
        } else if usage < self.least - FALLEN {
            (self.least, self.flat) = (usage, 0);
        } else if is_last_resort {
            self.flat += 1;
        }
        self.is_settled |= self.flat >= FLAT_SAMPLES;
    }
}

impl Default for Admission {
    fn default() -> Self {
        Self::new(MEMORY_HIGH)
    }
}

impl Start {
    /// Whether every allowed slot was in use long enough for the tasks' memory to show.
    fn is_steady(&mut self, seen: &Seen, is_all_used: bool) -> bool {
        let usage = seen.memory.map_or(0.0, MemorySample::usage);
        self.steady = match self.steady {
            _ if !is_all_used => None,
            Some((lasted, before)) if usage <= before + GROWN => Some((lasted + seen.passed, before)),
            _ => Some((Duration::ZERO, usage)),
        };
        self.steady.is_some_and(|(lasted, _)| lasted >= STEADY_FOR)
    }

    /// The share of the slots that memory has room for, if every task costs as much as those of this round.
    fn room(&self, seen: &Seen, memory_high: f64) -> f64 {
        let (Some(memory), Some(idle_used), (used, running)) = (seen.memory, self.idle_used, self.fullest)
        else {
            return 1.0;
        };
        let cost = used.saturating_sub(idle_used) as f64 / f64::from(running.max(1));
        let free = (memory.limit as f64 * memory_high - used as f64).max(0.0);
        let more = if cost > 0.0 { free / cost } else { return 1.0 };
        (f64::from(running) + more) / f64::from(seen.slots.max(1))
    }
}

#[cfg(test)]
mod tests;
