//! Computes how many workers a consumer may use now, from the depth of its queue and the latency of its
//! handlers. Pure: looks come in, limits come out.
//!
//! By Little's law, `waiting × latency ÷ time` workers empty a queue in that time. More workers do not help,
//! fewer leave messages behind. Latency may also rise *because* of the workers, if they share a bottleneck.
//! So a raise after which no more messages are finished is taken back.

use std::time::Duration;

/// How often to look.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A queue should be empty after this time.
const EMPTY_WITHIN_SECONDS: f64 = 10.0;
/// The largest change of one look, as a factor: a wrong change is small, and eight changes go from 1 to the
/// maximum.
const STEP: f64 = 2.0;
/// A raise is kept if the rate of finished messages grew by this factor.
const GAIN: f64 = 1.05;
/// If latency rose by this factor while the rate did not grow, the workers caused it.
const SLOWER: f64 = 1.2;
/// If latency fell to this share, fewer workers are enough.
const FASTER: f64 = 0.5;
/// More workers slow a shared bottleneck at most by this power of their number; a larger rise of latency has
/// another cause.
const STEEPEST: i32 = 2;
/// Looks to wait after a raise was taken back, before the next raise.
const PATIENCE: u32 = 10;

/// What happened since the last look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Messages that wait at the broker or here.
    pub waiting: u64,
    /// The sum of their run times.
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

/// The state between two looks.
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
    /// Whether handlers became faster and the limit is still being lowered.
    is_lowering: bool,
}

impl Adaptive {
    /// A limit between these two that starts at the lower.
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

    /// The limit now.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Decides after one look.
    pub fn adjust(&mut self, look: Look) -> Option<Change> {
        self.patience = self.patience.saturating_sub(1);
        if look.ended == 0 {
            // The latency is unknown; an empty queue needs no more than the least workers.
            return (look.waiting == 0)
                .then(|| self.set(self.min, 0.0, "nothing waits".to_owned()))
                .flatten();
        }
        let rate = look.ended as f64 / LOOK_EVERY.as_secs_f64();
        let latency = look.busy.as_secs_f64() / look.ended as f64;
        // If the latency changes for another reason, one look mixes old and new handlers, and its rate says
        // nothing about the next look.
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
        // A shorter queue alone does not lower the limit: fewer workers would take ever longer to empty it.
        self.is_lowering |= self.basis.is_some_and(|basis| latency < basis * FASTER);
        let is_served = (look.waiting as f64) < rate;
        if wanted < now && (self.is_lowering || is_served) {
            let change = self.set(wanted.max(now / STEP).ceil() as usize, latency, reason());
            // Lowering may take more than one step.
            self.is_lowering = (self.limit as f64) > wanted.ceil() && self.limit > self.min;
            return change;
        }
        self.is_lowering = false;
        self.basis.get_or_insert(latency);
        None
    }

    /// Whether the number of workers can explain that handlers are slower than with another limit.
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

    /// The look after one second with this limit and handlers of a fixed latency.
    fn second(limit: usize, waiting: &mut u64, latency: f64) -> Look {
        let ended = ((limit as f64 / latency) as u64).min(*waiting);
        *waiting -= ended;
        Look { waiting: *waiting, ended, busy: Duration::from_secs_f64(ended as f64 * latency) }
    }

    #[test]
    fn limit_follows_the_latency_within_ten_looks() {
        let mut adaptive = Adaptive::new(4, 100);
        let mut settled = Vec::new();
        for latency in [0.01, 0.5, 0.01] {
            let mut waiting = 20_000;
            let limits: Vec<usize> = (0..20)
                .map(|_| {
                    let look = second(adaptive.limit(), &mut waiting, latency);
                    // Publishers are as fast as the consumer, so that the depth stays the same.
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
    fn raise_without_more_finished_messages_is_taken_back() {
        let mut adaptive = Adaptive::new(4, 100);
        // The handlers call a service that does 100 calls a second in all.
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
    fn limit_stops_rising_where_more_workers_do_not_help() {
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
    fn a_raise_is_kept_when_handlers_become_slower_by_themselves() {
        // The handlers become slower in the middle of a look, at several points of it.
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
    fn reason_names_the_depth_and_the_latency() {
        let look = Look { waiting: 5_000, ended: 400, busy: Duration::from_secs(4) };
        let change = Adaptive::new(2, 100).adjust(look);
        let wanted = Change { limit: 4, reason: "5000 messages wait, each takes 10.0 ms".to_owned() };
        assert_eq!(change, Some(wanted));
    }
}
