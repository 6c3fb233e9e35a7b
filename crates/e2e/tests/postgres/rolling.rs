//! Several servers on one store, restarted one after another under load, one of them with one more additive
//! migration: remote workers continue, and no task is lost.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::TcpListener,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use e2e::{
    postgres::{Load, Place, judge, until},
    process::{self, END_LIMIT, Process, Stream},
    target::Target,
    up::Up,
};
use rustix::process::Signal;
use windlass_remote::{Options, RemoteStore};

use crate::is_long;

const SERVERS: usize = 3;
const WORKERS: usize = 3;
/// Fewer slots than the load needs: there is always a backlog, so a worker that starts nothing has a pause.
const SLOTS: u32 = 4;
const LATENCY: Duration = Duration::from_millis(100);
/// How many tasks every worker runs and every client enqueues between two restarts: a server stops under
/// load.
const BETWEEN: usize = 120;

/// Servers on fixed addresses, as behind names that clients know.
struct Fleet<'a> {
    place: &'a Place,
    addresses: Vec<String>,
    servers: Vec<Up>,
    /// The events with their times, to explain a pause.
    story: Vec<(Instant, String)>,
}

impl<'a> Fleet<'a> {
    fn start(place: &'a Place) -> Self {
        // All are bound at the same time, so that no two are equal, and then released.
        let bound: Vec<_> = (0..SERVERS).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            bound.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
        drop(bound);
        let mut fleet = Self { place, addresses, servers: Vec::new(), story: Vec::new() };
        for address in fleet.addresses.clone() {
            fleet.servers.push(Up::start(fleet.same_version(&address)).unwrap());
        }
        fleet
    }

    /// The server's own worker serves none of these tasks: they are for the remote workers.
    fn same_version(&self, address: &str) -> Command {
        self.place.command(["up", "--listen", address, "--queues", "others"]).unwrap()
    }

    /// A server that applies one more migration before it serves.
    fn next_version(&self, address: &str) -> Command {
        let mut command = process::command(env!("CARGO_BIN_EXE_newer_server"));
        command.args([self.place.url(), self.place.schema(), address]);
        command
    }

    fn urls(&self) -> String {
        let urls: Vec<_> = self.addresses.iter().map(|address| format!("http://{address}")).collect();
        urls.join(",")
    }

    /// Stops one server, waits for its end, and starts another in its place.
    fn restart(&mut self, place: usize, command: Command) {
        self.story.push((Instant::now(), format!("server {place} is asked to stop")));
        let server = &mut self.servers[place].process;
        server.signal(Signal::TERM).unwrap();
        assert_eq!(server.wait(END_LIMIT).unwrap().code(), Some(0), "{}", server.transcript());
        server.join_readers();
        let said = server.text(Stream::Err);
        assert!(!said.contains("cut off"), "calls were cut off by the end of the server: {said}");
        self.story.push((Instant::now(), format!("server {place} has stopped")));
        self.servers[place] = Up::start(command).unwrap();
        self.story.push((Instant::now(), format!("server {place} serves again")));
    }
}

/// The longest time between two starts of handlers at one worker, with the events before and in it.
fn longest_pause(fleet: &Fleet<'_>, target: &Target) -> (Duration, String) {
    let by =
        fleet.place.ask("SELECT windlass.id_text(id), worker FROM windlass.history ORDER BY id").unwrap();
    let came = target.book().first_came.clone();
    let mut starts: BTreeMap<&str, Vec<Instant>> = BTreeMap::new();
    for (task, worker) in by.lines().filter_map(|line| line.split_once('|')) {
        starts.entry(worker).or_default().extend(came.get(task));
    }
    assert_eq!(starts.len(), WORKERS, "every worker had tasks: {:?}", starts.keys());
    let mut longest = (Duration::ZERO, String::new());
    for (worker, starts) in &mut starts {
        starts.sort_unstable();
        for pair in starts.windows(2) {
            let pause = pair[1].duration_since(pair[0]);
            if pause > longest.0 {
                longest = (pause, format!("worker {worker}{}", around(&fleet.story, (pair[0], pair[1]))));
            }
        }
    }
    longest
}

/// The events around a period, each with its time from the start of the period.
fn around(story: &[(Instant, String)], (from, to): (Instant, Instant)) -> String {
    let mut told = String::new();
    for (at, what) in story.iter().filter(|(at, _)| *at + Duration::from_secs(1) > from && *at < to) {
        let after = at.saturating_duration_since(from).as_millis();
        let before = from.saturating_duration_since(*at).as_millis();
        let _ = if before > 0 {
            write!(told, "; {before} ms before it {what}")
        } else {
            write!(told, "; after {after} ms {what}")
        };
    }
    told
}

/// Waits until every worker has done some more tasks.
async fn every_worker_continues(place: &Place, workers: &[Process]) {
    for worker in workers {
        let wanted = place.done_by(worker.pid()).unwrap() + 20;
        until("a worker goes on", || Ok(place.done_by(worker.pid())? >= wanted)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_with_a_migration_loses_no_task() {
    let place = Place::shared().unwrap();
    let target = Arc::new(Target::start(LATENCY).await.unwrap());
    let mut fleet = Fleet::start(&place);
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(place.remote_worker(&fleet.urls(), SLOTS).await.unwrap());
    }
    let registered: Vec<_> = workers.iter().map(|worker| place.registration(worker.pid()).unwrap()).collect();
    let client = RemoteStore::connect(&fleet.urls().parse().unwrap(), Options::default()).await.unwrap();
    let load = Load::through(&place, client, &target).await.unwrap();
    load.more(BETWEEN).await.unwrap();
    every_worker_continues(&place, &workers).await;

    let version = "SELECT value FROM windlass.meta WHERE name = 'schema_version'";
    let before = place.count(version).unwrap();
    // The first server comes back with the next version and migrates the schema, while those of the version
    // before continue. The second comes back with the version before, on a schema that is newer than it; and
    // so on.
    let rounds = if is_long() { 12 } else { 2 };
    for round in 0..rounds {
        for server in 0..SERVERS {
            let address = fleet.addresses[server].clone();
            let is_next = (round + server) % 2 == 0;
            let command = if is_next { fleet.next_version(&address) } else { fleet.same_version(&address) };
            fleet.restart(server, command);
            assert_eq!(place.count(version).unwrap(), before + 1);
            load.more(BETWEEN).await.unwrap();
            every_worker_continues(&place, &workers).await;
        }
    }

    let (unknown, refused) = load.failures();
    let acknowledged = load.stop().await.unwrap();
    let judged = judge(&place, &acknowledged, &target).await.unwrap();
    let (pause, story) = longest_pause(&fleet, &target);
    println!(
        "{} restarts, {} tasks, {} ran again, {unknown} calls of the client without an answer and {refused} refused; \
         the longest pause of a worker was {} ms ({story})",
        rounds * SERVERS,
        acknowledged.len(),
        judged.claimed_again(),
        pause.as_millis()
    );
    assert_eq!(unknown, 0, "a server that stops answers what it was asked");
    assert_eq!(judged.crashes, 0, "no worker was taken for dead");
    for (worker, first) in workers.iter().zip(&registered) {
        assert_eq!(&place.registration(worker.pid()).unwrap(), first, "{}", worker.transcript());
    }
    for worker in &mut workers {
        worker.signal(Signal::TERM).unwrap();
        assert_eq!(worker.wait(END_LIMIT).unwrap().code(), Some(0), "{}", worker.transcript());
    }
}
