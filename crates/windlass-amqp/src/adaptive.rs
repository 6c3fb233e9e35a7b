//! How many workers a consumer may use at present: from the depth of its queue and the latency of its handlers. Pure: looks come
//! in, limits come out.
//!
//! By Little's law `waiting × latency ÷ time` workers empty a queue in that time. More are of no use to it, fewer leave it behind.
//! Latency may also rise *because* of the workers, when what they call is the bottleneck; so a raise that finishes nothing more
//! is taken back.

use std::time::Duration;

/// How often to look.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time in which a queue should be empty.
const EMPTY_WITHIN_SECONDS: f64 = 10.0;
/// The most that one look may change: a mistaken one is not far off, and eight of them go from 1 to the cap.
const STEP: f64 = 2.0;
/// A raise is worth it if this much more is finished.
const GAIN: f64 = 1.05;
/// Latency that rose by this much while nothing more was finished is the workers' own doing.
const SLOWER: f64 = 1.2;
/// Latency that fell by this much lets fewer workers do.
const FASTER: f64 = 0.5;
/// More workers make what they share slower by this power of their number at most; latency beyond that rose by itself.
const STEEPEST: i32 = 2;
/// Looks to wait after a raise was taken back.
const PATIENCE: u32 = 10;

/// What happened since the last look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Messages that wait at the broker or here.
    pub waiting: u64,
    /// Handlers that ended.
    pub ended: u64,
    /// The sum of their times.
    pub busy: Duration,
}

/// A new limit, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Handlers that may run at once.
    pub limit: usize,
    /// For the log.
    pub reason: String,
}

/// What is remembered between looks.
#[derive(Debug)]
pub struct Adaptive {
    min: usize,
    max: usize,
    limit: usize,
    /// Latency when the limit was last set.
    basis: Option<f64>,
    /// Limit, rate and latency before the last raise, until it is judged.
    raised: Option<(usize, f64, f64)>,
    patience: u32,
    /// Limit and latency of the last look.
    last: Option<(usize, f64)>,
    /// Whether handlers became faster and the limit is still on its way down.
    is_lowering: bool,
}

impl Adaptive {
    /// Between these two, beginning with the lower.
    pub fn new(min: usize, max: usize) -> Self {
        let min = min.clamp(1, max.max(1));
        Self {
            min,
            max: max.max(min),
            limit: min,
            basis: None,
            raised: None,
            patience: 0,
            last: None,
            is_lowering: false,
        }
    }

    /// The limit in force.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Decides after one look.
    pub fn adjust(&mut self, look: Look) -> Option<Change> {
        self.patience = self.patience.saturating_sub(1);
        if look.ended == 0 {
            // Nothing is known of the latency; a queue that is empty needs no workers.
            return (look.waiting == 0)
                .then(|| self.set(self.min, 0.0, "nothing waits".to_owned()))
                .flatten();
        }
        let rate = look.ended as f64 / LOOK_EVERY.as_secs_f64();
        let latency = look.busy.as_secs_f64() / look.ended as f64;
        // While handlers change by themselves, a look sees some of either sort, and its rate says nothing about the next.
        let last = self.last.replace((self.limit, latency));
        let is_steady = last.is_none_or(|last| self.explains(last, latency));
        if let Some((limit, rate_before, latency_before)) = self.raised.take()
            && rate < rate_before * GAIN
            && latency > latency_before * SLOWER
            && self.explains((limit, latency_before), latency)
        {
            self.patience = PATIENCE;
            let reason = format!(
                "{} workers finished no more than {limit}, each in {:.0} ms instead of {:.0} ms",
                self.limit,
                latency * 1e3,
                latency_before * 1e3
            );
            return self.set(limit, latency, reason);
        }
        let wanted = look.waiting as f64 * latency / EMPTY_WITHIN_SECONDS;
        let reason = || format!("{} messages wait, each takes {:.1} ms", look.waiting, latency * 1e3);
        let now = self.limit as f64;
        if wanted > now && self.patience == 0 {
            let before = (self.limit, rate, latency);
            let change = self.set(wanted.min(now * STEP).ceil() as usize, latency, reason())?;
            self.raised = is_steady.then_some(before);
            return Some(change);
        }
        // A queue that gets shorter is no reason to slow down, else its end would never come.
        self.is_lowering |= self.basis.is_some_and(|basis| latency < basis * FASTER);
        let is_served = (look.waiting as f64) < rate;
        if wanted < now && (self.is_lowering || is_served) {
            let change = self.set(wanted.max(now / STEP).ceil() as usize, latency, reason());
            // It may take more than one step.
            self.is_lowering = (self.limit as f64) > wanted.ceil() && self.limit > self.min;
            return change;
        }
        self.is_lowering = false;
        self.basis.get_or_insert(latency);
        None
    }

    /// Whether the workers may be what made handlers slower than they were with another limit.
    fn explains(&self, (limit, before): (usize, f64), latency: f64) -> bool {
        latency <= before * SLOWER * (self.limit as f64 / limit as f64).powi(STEEPEST)
    }

    fn set(&mut self, limit: usize, latency: f64, reason: String) -> Option<Change> {
        let limit = limit.clamp(self.min, self.max);
        if latency > 0.0 {
            self.basis = Some(latency);
        }
        if limit == self.limit {
            return None;
        }
        self.limit = limit;
        Some(Change { limit, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handlers of a fixed latency: what a second with this limit brings.
    fn second(limit: usize, waiting: &mut u64, latency: f64) -> Look {
        let ended = ((limit as f64 / latency) as u64).min(*waiting);
        *waiting -= ended;
        Look { waiting: *waiting, ended, busy: Duration::from_secs_f64(ended as f64 * latency) }
    }

    #[test]
    fn limit_follows_the_latency_within_ten_looks_and_never_leaves_its_bounds() {
        let mut adaptive = Adaptive::new(4, 100);
        let mut settled = Vec::new();
        for latency in [0.01, 0.5, 0.01] {
            let mut waiting = 20_000;
            let limits: Vec<usize> = (0..20)
                .map(|_| {
                    let look = second(adaptive.limit(), &mut waiting, latency);
                    // Others publish as fast as this consumes, so that the queue stays as deep.
                    waiting = 20_000;
                    adaptive.adjust(Look { waiting, ..look });
                    adaptive.limit()
                })
                .collect();
            assert!(limits.iter().all(|limit| (4..=100).contains(limit)), "{limits:?}");
            let last = limits[19];
            assert!(limits[10..].iter().all(|limit| *limit == last), "{latency}: {limits:?}");
            settled.push(last);
        }
        assert_eq!(settled, [20, 100, 20], "20,000 messages of 10 ms in ten seconds need 20");
    }

    #[test]
    fn queue_that_gets_shorter_is_emptied_without_slowing_down() {
        let (mut adaptive, mut waiting, mut seconds) = (Adaptive::new(1, 200), 20_000, 0);
        while waiting > 0 {
            let look = second(adaptive.limit(), &mut waiting, 0.01);
            adaptive.adjust(look);
            seconds += 1;
        }
        assert!(seconds <= 20, "{seconds}");
        adaptive.adjust(Look { waiting: 0, ended: 0, busy: Duration::ZERO });
        assert_eq!(adaptive.limit(), 1);
    }

    #[test]
    fn raise_that_finishes_no_more_is_taken_back() {
        let mut adaptive = Adaptive::new(4, 100);
        // What they call does 100 a second, however many ask.
        let mut limits = Vec::new();
        for _ in 0..8 {
            let latency = adaptive.limit() as f64 / 100.0;
            let look = Look { waiting: 50_000, ended: 100, busy: Duration::from_secs_f64(100.0 * latency) };
            adaptive.adjust(look);
            limits.push(adaptive.limit());
        }
        assert_eq!(limits, [8, 4, 4, 4, 4, 4, 4, 4]);
    }

    #[test]
    fn limit_stops_where_more_workers_finish_no_more() {
        let mut adaptive = Adaptive::new(4, 200);
        let mut limits = Vec::new();
        for _ in 0..12 {
            // Ten at a time are served in 100 ms; others wait for their turn.
            let latency = 0.1 * (adaptive.limit() as f64 / 10.0).max(1.0);
            let look = second(adaptive.limit(), &mut 1_000_000, latency);
            adaptive.adjust(Look { waiting: 50_000, ..look });
            limits.push(adaptive.limit());
        }
        assert_eq!(limits, [8, 16, 32, 16, 16, 16, 16, 16, 16, 16, 16, 16]);
    }

    #[test]
    fn handlers_that_become_slower_by_themselves_are_not_blamed_on_a_raise() {
        // The change falls into the middle of a look at every possible place.
        for share in [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98] {
            let mut adaptive = Adaptive::new(4, 100);
            let steady = |adaptive: &mut Adaptive, latency: f64, looks: u32| {
                for _ in 0..looks {
                    let look = second(adaptive.limit(), &mut 1_000_000, latency);
                    adaptive.adjust(Look { waiting: 20_000, ..look });
                }
            };
            steady(&mut adaptive, 0.01, 10);
            assert_eq!(adaptive.limit(), 20);
            let limit = adaptive.limit() as f64;
            let (quick, slow) = (limit / 0.01 * share, limit / 0.5 * (1.0 - share));
            let busy = Duration::from_secs_f64(quick * 0.01 + slow * 0.5);
            adaptive.adjust(Look { waiting: 20_000, ended: (quick + slow) as u64, busy });
            steady(&mut adaptive, 0.5, 8);
            assert_eq!(adaptive.limit(), 100, "{share}");
        }
    }

    #[test]
    fn reason_names_what_was_seen() {
        let look = Look { waiting: 5_000, ended: 400, busy: Duration::from_secs(4) };
        let change = Adaptive::new(2, 100).adjust(look);
        let wanted = Change { limit: 4, reason: "5000 messages wait, each takes 10.0 ms".to_owned() };
        assert_eq!(change, Some(wanted));
    }
}
