//! The figures of a part of the run, from the counts of the site.

use super::site::{HostReport, Report};

/// What the user asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Number of jobs, and of hosts.
    pub(super) jobs: u32,
    /// The limit of each job.
    pub(super) concurrency: u32,
    /// Slots of the worker.
    pub(super) slots: u32,
}

impl Plan {
    /// Requests that could be open at once.
    pub(super) fn open_max(self) -> u32 {
        self.jobs.saturating_mul(self.concurrency).min(self.slots)
    }
}

/// Figures between two reports of the site.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) seconds: f64,
    /// Answers given.
    pub(super) tasks: u64,
    /// Answers per second. A request that is open at either end counts by the part of its delay that has
    /// passed.
    pub(super) per_second: f64,
    /// The most that any queue can reach: as many requests open as may be, each for exactly its delay,
    /// with no pause between two.
    pub(super) ideal_per_second: f64,
    /// Mean of the delays that the site drew for these answers.
    pub(super) mean_delay_ms: f64,
    /// Answers per second of each job.
    pub(super) jobs: Vec<f64>,
    /// The smallest peak of any host.
    pub(super) min_peak: u32,
    /// The longest time that any host was without an open request.
    pub(super) longest_idle_ms: f64,
}

impl Figures {
    /// The figures between one report and a later one. Peaks and idle times count from the mark.
    pub(super) fn between(plan: Plan, from: &Report, to: &Report) -> Self {
        let seconds = to.at_us.saturating_sub(from.at_us) as f64 / 1e6;
        let grown: Vec<Grown> = to
            .hosts
            .iter()
            .enumerate()
            .map(|(place, host)| Grown::between(&from.hosts.get(place).copied().unwrap_or_default(), host))
            .collect();
        let served: f64 = grown.iter().map(|host| host.served).sum();
        let served_seconds: f64 = grown.iter().map(|host| host.served_seconds).sum();
        let mean_delay = ratio(served_seconds, served);
        Self {
            seconds,
            tasks: grown.iter().map(|host| host.done).sum(),
            per_second: ratio(served, seconds),
            ideal_per_second: ratio(f64::from(plan.open_max()), mean_delay),
            mean_delay_ms: mean_delay * 1e3,
            jobs: grown.iter().map(|host| ratio(host.served, seconds)).collect(),
            min_peak: least(to, |host| host.peak_since_mark),
            longest_idle_ms: most(to, |host| host.longest_idle_us) as f64 / 1e3,
        }
    }

    /// The rate as a share of the ideal.
    pub(super) fn efficiency(&self) -> f64 {
        ratio(self.per_second, self.ideal_per_second)
    }

    /// Rate of the slowest job.
    pub(super) fn slowest(&self) -> f64 {
        self.jobs.iter().copied().min_by(f64::total_cmp).unwrap_or_default()
    }

    /// Rate of the fastest job.
    pub(super) fn fastest(&self) -> f64 {
        self.jobs.iter().copied().max_by(f64::total_cmp).unwrap_or_default()
    }

    /// Mean rate of a job.
    pub(super) fn mean(&self) -> f64 {
        ratio(self.per_second, self.jobs.len() as f64)
    }
}

/// How much the figures of a host grew.
struct Grown {
    done: u64,
    served: f64,
    served_seconds: f64,
}

impl Grown {
    fn between(from: &HostReport, to: &HostReport) -> Self {
        Self {
            done: to.done.saturating_sub(from.done),
            served: to.served - from.served,
            served_seconds: to.served_us.saturating_sub(from.served_us) as f64 / 1e6,
        }
    }
}

/// Most requests that any host ever had open at once.
pub(super) fn max_concurrency_seen(report: &Report) -> u32 {
    most(report, |host| host.peak)
}

fn most<T: Ord + Default>(report: &Report, of: impl Fn(&HostReport) -> T) -> T {
    report.hosts.iter().map(of).max().unwrap_or_default()
}

fn least<T: Ord + Default>(report: &Report, of: impl Fn(&HostReport) -> T) -> T {
    report.hosts.iter().map(of).min().unwrap_or_default()
}

/// A share; 0 if the whole is 0.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Rounds to a readable number of digits.
pub(super) fn round(figure: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (figure * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(at_us: u64, done: [u64; 2]) -> Report {
        let host = |done| HostReport {
            done,
            served: done as f64,
            served_us: done * 1_500_000,
            peak: 4,
            ..HostReport::default()
        };
        Report { at_us, hosts: done.map(host).to_vec() }
    }

    #[test]
    fn rates_cover_the_stretch_and_the_ideal_uses_drawn_delays() {
        let plan = Plan { jobs: 2, concurrency: 3, slots: 500 };
        let (from, to) = (report(1_000_000, [10, 10]), report(11_000_000, [28, 30]));
        let figures = Figures::between(plan, &from, &to);
        assert_eq!((figures.tasks, figures.per_second, figures.ideal_per_second), (38, 3.8, 4.0));
        assert!((figures.efficiency() - 0.95).abs() < 1e-9);
        assert_eq!((figures.slowest(), figures.fastest(), figures.mean()), (1.8, 2.0, 1.9));
        assert_eq!(max_concurrency_seen(&to), 4);
        let few_slots = Figures::between(Plan { slots: 3, ..plan }, &from, &to);
        assert!((few_slots.ideal_per_second - 2.0).abs() < 1e-9, "slots cap the ideal");
    }

    #[test]
    fn nothing_done_is_no_division_by_zero() {
        let plan = Plan { jobs: 2, concurrency: 3, slots: 500 };
        let figures = Figures::between(plan, &Report::default(), &report(0, [0, 0]));
        assert_eq!((figures.efficiency(), figures.mean(), figures.mean_delay_ms), (0.0, 0.0, 0.0));
    }
}
