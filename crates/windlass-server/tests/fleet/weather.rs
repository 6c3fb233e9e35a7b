//! Network faults: when each begins and ends.

use std::time::Duration;

use turmoil::Sim;

use crate::{dice::Dice, judge::Judge};

/// How many faults there were, by sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Links that carried nothing for a while.
    pub partitions: u64,
    /// Links that carried one direction only.
    pub half_open: u64,
    /// Links that delivered all messages late.
    pub held: u64,
    /// Hosts that lost all their memory and were started again.
    pub crashes: u64,
}

#[derive(Debug, Clone)]
enum Trouble {
    Apart(String, String),
    OneWay(String, String),
    Held(String, String),
    Down(String),
}

/// Faults that come and go.
pub struct Weather {
    dice: Dice,
    workers: u64,
    servers: u64,
    next: Duration,
    troubles: Vec<(Duration, Trouble)>,
    /// The faults so far.
    pub counts: Counts,
}

impl Weather {
    /// The faults of a seed, over this many hosts.
    #[must_use]
    pub fn new(dice: Dice, workers: u64, servers: u64) -> Self {
        Self { dice, workers, servers, next: Duration::ZERO, troubles: Vec::new(), counts: Counts::default() }
    }

    /// Ends the faults that are over and starts those that are due.
    pub fn blow(&mut self, sim: &mut Sim<'_>, judge: &Judge) {
        let now = sim.elapsed();
        self.clear(sim, judge, |until| until <= now);
        if now < self.next {
            return;
        }
        self.next = now + self.dice.time(100..900);
        let trouble = self.draw();
        let until = now + self.dice.time(100..6_000);
        // Two faults of one link would end each other.
        if !self.troubles.iter().any(|(_, other)| other.touches(&trouble)) {
            judge.tell(&format!("{trouble:?} until {} ms", until.as_millis()));
            trouble.start(sim, &mut self.counts);
            self.troubles.push((until, trouble));
        }
    }

    /// Ends every fault.
    pub fn calm(&mut self, sim: &mut Sim<'_>, judge: &Judge) {
        self.clear(sim, judge, |_| true);
    }

    fn clear(&mut self, sim: &mut Sim<'_>, judge: &Judge, is_over: impl Fn(Duration) -> bool) {
        for (until, trouble) in std::mem::take(&mut self.troubles) {
            if is_over(until) {
                judge.tell(&format!("over: {trouble:?}"));
                trouble.end(sim);
            } else {
                self.troubles.push((until, trouble));
            }
        }
    }

    fn draw(&mut self) -> Trouble {
        let worker = format!("worker-{}", self.dice.below(self.workers));
        let server = format!("server-{}", self.dice.below(self.servers));
        match self.dice.below(9) {
            0 | 1 => Trouble::Apart(worker, server),
            2 => Trouble::OneWay(worker, server),
            3 => Trouble::OneWay(server, worker),
            4 | 5 => Trouble::Held(worker, server),
            6 | 7 => Trouble::Down(worker),
            _ => Trouble::Down(server),
        }
    }
}

impl Trouble {
    fn ends(&self) -> [&str; 2] {
        match self {
            Self::Apart(a, b) | Self::OneWay(a, b) | Self::Held(a, b) => [a, b],
            Self::Down(a) => [a, a],
        }
    }

    fn touches(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Down(a), Self::Down(b)) => a == b,
            (Self::Down(_), _) | (_, Self::Down(_)) => false,
            _ => {
                let ([a, b], [c, d]) = (self.ends(), other.ends());
                (a, b) == (c, d) || (a, b) == (d, c)
            }
        }
    }

    fn start(&self, sim: &mut Sim<'_>, counts: &mut Counts) {
        match self {
            Self::Apart(a, b) => {
                counts.partitions += 1;
                sim.partition(a.as_str(), b.as_str());
            }
            Self::OneWay(a, b) => {
                counts.half_open += 1;
                sim.partition_oneway(a.as_str(), b.as_str());
            }
            Self::Held(a, b) => {
                counts.held += 1;
                sim.hold(a.as_str(), b.as_str());
            }
            Self::Down(a) => {
                counts.crashes += 1;
                sim.crash(a.as_str());
            }
        }
    }

    fn end(&self, sim: &mut Sim<'_>) {
        match self {
            Self::Apart(a, b) => sim.repair(a.as_str(), b.as_str()),
            Self::OneWay(a, b) => sim.repair_oneway(a.as_str(), b.as_str()),
            Self::Held(a, b) => sim.release(a.as_str(), b.as_str()),
            Self::Down(a) => sim.bounce(a.as_str()),
        }
    }
}
