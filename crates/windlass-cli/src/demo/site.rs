//! The sites that the demo visits: one process with one port for each host. Every answer takes 1–2 s.
//!
//! The process does its own counting, so the demo does not have to trust its own store. It answers one
//! line of JSON for each line that it reads. It ends at the end of its input, so it never outlives the
//! demo, however the demo ends.

use std::{
    convert::Infallible,
    io::{BufRead as _, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use clap::Args;
use http_body_util::Full;
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use super::dice::Dice;

/// Sent to the site process: report your counts.
pub(super) const LOOK: &str = "look";
/// Sent to the site process: report, and start to count peaks and idle times again.
pub(super) const MARK: &str = "mark";
/// Lines that may wait to be answered; the demo sends one at a time.
const LINES_MAX: usize = 8;

/// Arguments of the site.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// How many hosts
    #[arg(long)]
    hosts: u32,
}

/// Where the hosts are: the first line that the site process prints.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Addresses {
    pub(super) hosts: Vec<String>,
}

/// The counts of all hosts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// The site's own clock.
    pub(super) at_us: u64,
    pub(super) hosts: Vec<HostReport>,
}

/// The counts of one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HostReport {
    /// Requests that are open now.
    pub(super) open: u32,
    /// Most that were ever open at once.
    pub(super) peak: u32,
    /// The same since the mark.
    pub(super) peak_since_mark: u32,
    /// Answers given.
    pub(super) done: u64,
    /// The same, where an open request counts as the part of its delay that has passed. A rate between
    /// two reports then does not depend on which requests have just ended.
    pub(super) served: f64,
    /// Sum of the delays of these requests; of an open one only the part that has passed.
    pub(super) served_us: u64,
    /// Longest time without any open request since the mark.
    pub(super) longest_idle_us: u64,
}

/// Serves until the input ends.
pub fn run(args: &SiteArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(args.hosts))
}

async fn serve(number: u32) -> anyhow::Result<()> {
    let (started, mut hosts, mut addresses) = (Instant::now(), Vec::new(), Vec::new());
    for place in 0..number {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        addresses.push(listener.local_addr()?.to_string());
        let host = Arc::new(Host::new(place, started));
        hosts.push(host.clone());
        tokio::spawn(listen(listener, host));
    }
    say(&Addresses { hosts: addresses })?;
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let now = Instant::now();
        if line == MARK {
            for host in &hosts {
                host.lock().mark(now);
            }
        }
        let at_us = now.duration_since(started).as_micros() as u64;
        say(&Report { at_us, hosts: hosts.iter().map(|host| host.lock().report(now)).collect() })?;
    }
    Ok(())
}

fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(what)?)?;
    Ok(out.flush()?)
}

/// Lines of the input, read on a thread of their own.
fn lines() -> tokio::sync::mpsc::Receiver<String> {
    let (send, lines) = tokio::sync::mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

async fn listen(listener: TcpListener, host: Arc<Host>) {
    while let Ok((stream, _)) = listener.accept().await {
        let host = host.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_| answer(host.clone()));
            // The demo closes its connections when it ends; that is no error.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(host: Arc<Host>) -> Result<Response<Full<Bytes>>, Infallible> {
    let visit = Visit::begin(host);
    tokio::time::sleep(visit.delay).await;
    visit.end();
    Ok(Response::new(Full::new(Bytes::from_static(b"a page\n"))))
}

/// A request from its arrival to its answer. One that is broken off is no longer open, and does not count
/// as done.
struct Visit {
    host: Arc<Host>,
    number: u64,
    delay: Duration,
}

impl Visit {
    fn begin(host: Arc<Host>) -> Self {
        let Open { number, delay, .. } = host.lock().arrive(Instant::now());
        Self { host, number, delay }
    }

    fn end(self) {
        let mut seen = self.host.lock();
        seen.done += 1;
        seen.drawn_us += self.delay.as_micros() as u64;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.host.lock().leave(self.number, Instant::now());
    }
}

struct Host(Mutex<Seen>);

impl Host {
    fn new(place: u32, now: Instant) -> Self {
        Self(Mutex::new(Seen {
            dice: Dice::new(u64::from(place)),
            visits: 0,
            open: Vec::new(),
            peak: 0,
            peak_since_mark: 0,
            done: 0,
            drawn_us: 0,
            idle_since: Some(now),
            longest_idle: Duration::ZERO,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Seen {
    dice: Dice,
    /// Requests that arrived.
    visits: u64,
    open: Vec<Open>,
    peak: u32,
    peak_since_mark: u32,
    done: u64,
    /// Sum of the delays of the answered requests.
    drawn_us: u64,
    /// Since when no request is open.
    idle_since: Option<Instant>,
    longest_idle: Duration,
}

/// A request that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    number: u64,
    since: Instant,
    delay: Duration,
}

impl Open {
    /// The part of its delay that has passed.
    fn passed(&self, now: Instant) -> Duration {
        now.duration_since(self.since).min(self.delay)
    }
}

impl Seen {
    fn arrive(&mut self, now: Instant) -> Open {
        self.longest_idle = self.longest_idle(now);
        self.idle_since = None;
        self.visits += 1;
        let visit = Open { number: self.visits, since: now, delay: self.dice.draw() };
        self.open.push(visit);
        let open = self.open.len() as u32;
        self.peak = self.peak.max(open);
        self.peak_since_mark = self.peak_since_mark.max(open);
        visit
    }

    fn leave(&mut self, number: u64, now: Instant) {
        self.open.retain(|visit| visit.number != number);
        if self.open.is_empty() {
            self.idle_since = Some(now);
        }
    }

    fn mark(&mut self, now: Instant) {
        self.peak_since_mark = self.open.len() as u32;
        self.longest_idle = Duration::ZERO;
        if self.idle_since.is_some() {
            self.idle_since = Some(now);
        }
    }

    fn longest_idle(&self, now: Instant) -> Duration {
        let idle = self.idle_since.map_or(Duration::ZERO, |since| now.duration_since(since));
        self.longest_idle.max(idle)
    }

    fn report(&self, now: Instant) -> HostReport {
        let passed: Duration = self.open.iter().map(|visit| visit.passed(now)).sum();
        let parts: f64 = self.open.iter().map(|visit| visit.passed(now).div_duration_f64(visit.delay)).sum();
        HostReport {
            open: self.open.len() as u32,
            peak: self.peak,
            peak_since_mark: self.peak_since_mark,
            done: self.done,
            served: self.done as f64 + parts,
            served_us: self.drawn_us + passed.as_micros() as u64,
            longest_idle_us: self.longest_idle(now).as_micros() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_counts_open_requests_and_idle_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let host = Host::new(0, start);
        let mut seen = host.lock();
        let first = seen.arrive(at(10)).number;
        let second = seen.arrive(at(11)).number;
        seen.leave(first, at(20));
        assert_eq!((seen.report(at(20)).open, seen.report(at(20)).peak), (1, 2));
        assert_eq!(seen.report(at(20)).longest_idle_us, 10_000, "before the first request");
        seen.mark(at(30));
        assert_eq!((seen.report(at(30)).peak, seen.report(at(30)).peak_since_mark), (2, 1));
        seen.leave(second, at(40));
        assert_eq!(seen.report(at(45)).longest_idle_us, 5_000, "an idle time that goes on counts");
        seen.mark(at(50));
        seen.arrive(at(52));
        assert_eq!(seen.report(at(60)).longest_idle_us, 2_000, "the mark cuts an idle time in two");
    }

    #[test]
    fn an_open_request_counts_by_the_part_that_has_passed() {
        let start = Instant::now();
        let host = Host::new(0, start);
        let mut seen = host.lock();
        let delay = seen.arrive(start).delay;
        let half = seen.report(start + delay / 2);
        assert!((half.served - 0.5).abs() < 1e-6, "{half:?}");
        assert!(half.served_us.abs_diff(delay.as_micros() as u64 / 2) <= 1, "{half:?}");
        let late = seen.report(start + 2 * delay);
        assert!((late.served - 1.0).abs() < 1e-6, "an answer that is late is no more than one: {late:?}");
    }
}
