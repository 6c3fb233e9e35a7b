//! What the user sees: a few lines that are redrawn while the demo runs, and one at the end.

use super::{
    figures::{Figures, Plan},
    site::Report,
    stock::site_name,
};
use crate::output::text;

/// Jobs with a bar of their own.
const JOBS_SHOWN: usize = 3;
/// Width of the bar of the whole demo.
const BAR: usize = 20;
/// Width of a job's bar, if its limit is that high.
const JOB_BAR_MAX: u32 = 10;

/// The worker's own counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) claim_p99_ms: f64,
    pub(super) retries: u64,
}

/// The first line.
pub(super) fn title(plan: Plan) -> String {
    let Plan { jobs, concurrency, slots } = plan;
    format!("{jobs} sites answering in 1–2 s · {jobs} jobs × {concurrency} · {slots} slots")
}

/// The lines that change.
pub(super) fn lines(plan: Plan, figures: &Figures, now: &Report, counts: Counts) -> Vec<String> {
    let (share, most) = (figures.efficiency(), plan.open_max());
    let open: u32 = now.hosts.iter().map(|host| host.open).sum();
    let rate = format!("{:.1} tasks/s", figures.per_second);
    let jobs: Vec<String> = now
        .hosts
        .iter()
        .zip(&figures.jobs)
        .enumerate()
        .take(JOBS_SHOWN)
        .map(|(place, (host, rate))| {
            let width = plan.concurrency.min(JOB_BAR_MAX);
            let full = f64::from(host.open) / f64::from(plan.concurrency);
            format!("{} {} {rate:.1}/s", site_name(place), bar(full, width as usize))
        })
        .collect();
    let more = if now.hosts.len() > JOBS_SHOWN { "   …" } else { "" };
    vec![
        format!(
            "  rate  {rate:<15} ideal {:<7.1} {} {:.1} %",
            figures.ideal_per_second,
            bar(share, BAR),
            share * 100.0
        ),
        format!(
            "  open  {:<15} claim p99 {:.1} ms   retries {}",
            format!("{open} / {most}"),
            counts.claim_p99_ms,
            counts.retries
        ),
        format!("  {}{more}", jobs.join("   ")),
    ]
}

/// The last line.
pub(super) fn summary(plan: Plan, figures: &Figures, seconds: f64, pages: u64, most_seen: u32) -> String {
    let verdict = if most_seen > plan.concurrency {
        format!("A site saw {most_seen} requests at once: the limit of {} did not hold.", plan.concurrency)
    } else {
        let requests = if most_seen == 1 { "request" } else { "requests" };
        format!("No site ever saw more than {most_seen} {requests} at once.")
    };
    format!(
        "{seconds:.0} s: {} pages, {:.1} % of ideal. Slowest job {:.2}/s, fastest {:.2}/s. {verdict}",
        text::count(pages),
        figures.efficiency() * 100.0,
        figures.slowest(),
        figures.fastest(),
    )
}

/// A bar. It is full only at a share of 1.
fn bar(share: f64, width: usize) -> String {
    let full = ((share * width as f64 + 1e-9) as usize).min(width);
    format!("{}{}", "█".repeat(full), "░".repeat(width - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::site::HostReport;

    const PLAN: Plan = Plan { jobs: 62, concurrency: 3, slots: 500 };

    fn figures() -> Figures {
        let mut jobs = vec![2.0; 62];
        jobs[1] = 1.93;
        jobs[61] = 2.07;
        Figures { per_second: 123.6, ideal_per_second: 124.2, jobs, ..Figures::default() }
    }

    #[test]
    fn the_screen_shows_every_line_and_fits_eighty_columns() {
        let mut hosts = vec![HostReport { open: 3, ..HostReport::default() }; 62];
        hosts[2].open = 1;
        let counts = Counts { claim_p99_ms: 2.13, retries: 0 };
        let lines = lines(PLAN, &figures(), &Report { at_us: 1, hosts }, counts);
        assert_eq!(title(PLAN), "62 sites answering in 1–2 s · 62 jobs × 3 · 500 slots");
        assert_eq!(
            lines,
            [
                "  rate  123.6 tasks/s   ideal 124.2   ███████████████████░ 99.5 %",
                "  open  184 / 186       claim p99 2.1 ms   retries 0",
                "  site-01 ███ 2.0/s   site-02 ███ 1.9/s   site-03 █░░ 2.0/s   …",
            ]
        );
        assert!(lines.iter().all(|line| line.chars().count() < 80));
    }

    #[test]
    fn the_last_line_says_whether_the_limit_held() {
        assert_eq!(
            summary(PLAN, &figures(), 30.02, 3_702, 3),
            "30 s: 3,702 pages, 99.5 % of ideal. Slowest job 1.93/s, fastest 2.07/s. \
             No site ever saw more than 3 requests at once."
        );
        assert!(summary(PLAN, &figures(), 30.0, 1, 4).ends_with("the limit of 3 did not hold."));
    }
}
