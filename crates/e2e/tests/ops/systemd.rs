//! What `up`, `worker` and `consume` report to a service manager.

use std::{
    cell::Cell,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process::Command,
    time::{Duration, Instant},
};

use e2e::{
    http::Api,
    postgres::{LIMIT, Place},
    process::{self, END_LIMIT, Process, START_LIMIT},
    until,
    up::{Up, up_command},
};
use rustix::process::Signal;
use serde_json::json;
use windlass_scratch::{ClusterOptions, Mode};

/// The watchdog interval; a process reports three times in it.
const WATCHDOG: Duration = Duration::from_millis(300);

/// A service manager that records the reports.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn hear(&self, limit: Duration) -> Option<String> {
        self.socket.set_read_timeout(Some(limit)).unwrap();
        let mut text = [0; 256];
        let n = self.socket.recv(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text[..n]).into_owned())
    }

    /// Waits for a message and skips others before it.
    #[track_caller]
    fn wait_for(&self, message: &str) {
        let deadline = Instant::now() + LIMIT;
        while self.hear(LIMIT).as_deref() != Some(message) {
            assert!(Instant::now() < deadline, "{message} did not come");
        }
    }

    /// Drops the messages so far.
    fn forget(&self) {
        while self.hear(Duration::from_millis(1)).is_some() {}
    }
}

fn managed(mut command: Command, socket: &str) -> Command {
    command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
    command
}

/// Waits until `n` handlers run in the process.
async fn until_in_flight(api: &Api, n: u32) {
    let wanted = format!("worker_in_flight_tasks {n}");
    until(async || {
        let page = api.get("/metrics").await.unwrap().body.as_str().unwrap().to_owned();
        let found = page.lines().find(|line| line.starts_with("worker_in_flight_tasks "));
        if found == Some(&*wanted) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn up_reports_ready_alive_and_stopping_to_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = Manager { socket: UnixDatagram::bind(&path).unwrap() };
    let command = up_command(&folder.path().join("windlass.db"), ["--drain-timeout", "1h"]).unwrap();
    let mut up = Up::start(managed(command, path.to_str().unwrap())).unwrap();
    let api = up.api();
    manager.wait_for("READY=1");
    assert_eq!(api.get("/readyz").await.unwrap().status, 200, "ready means that it serves");
    manager.wait_for("WATCHDOG=1");

    let id = crate::enqueue(&api, &json!({"kind": "sleep", "payload": {"ms": 3_600_000}})).await;
    crate::until_state(&api, &id, "running").await;
    // The store reports a task as running before its handler runs, and an unstarted one is handed back
    // instead of awaited.
    until_in_flight(&api, 1).await;
    up.process.signal(Signal::TERM).unwrap();
    manager.wait_for("STOPPING=1");
    manager.forget();
    assert_eq!(api.get("/readyz").await.unwrap().status, 503);
    manager.wait_for("WATCHDOG=1");
    up.process.signal(Signal::TERM).unwrap();
    assert_eq!(up.process.wait(END_LIMIT).unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_speaks_to_an_abstract_socket() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("windlass-e2e-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = Manager { socket: UnixDatagram::bind_addr(&address).unwrap() };
    let mut command = process::command(process::windlass().unwrap());
    command.args(["worker", "--store", "sqlite:windlass.db"]).current_dir(folder.path());
    let mut worker = Process::start(managed(command, &format!("@{name}"))).unwrap();
    manager.wait_for("READY=1");
    manager.wait_for("WATCHDOG=1");
    worker.signal(Signal::TERM).unwrap();
    manager.wait_for("STOPPING=1");
    assert_eq!(worker.wait(END_LIMIT).unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_consumes_speaks_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = Manager { socket: UnixDatagram::bind(&path).unwrap() };
    let queue = format!("managed-{}", std::process::id());
    let lists = format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nto = \"store\"\nkind = \"k\"\n"
    );
    let file = folder.path().join("windlass.toml");
    std::fs::write(&file, lists).unwrap();
    let mut command = process::command(process::windlass().unwrap());
    command.args(["consume", "--config"]).arg(&file).current_dir(folder.path());
    command.env("WINDLASS_AMQP_URL", windlass_scratch::shared_node().unwrap().url());
    let mut consuming = Process::start(managed(command, path.to_str().unwrap())).unwrap();
    manager.wait_for("READY=1");
    manager.wait_for("WATCHDOG=1");
    consuming.signal(Signal::TERM).unwrap();
    manager.wait_for("STOPPING=1");
    assert_eq!(consuming.wait(END_LIMIT).unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_never_gets_its_store_is_never_ready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = Manager { socket: UnixDatagram::bind(&path).unwrap() };
    let mut command = process::command(process::windlass().unwrap());
    // No process listens on port 1.
    command.args(["worker", "--store", "postgres://nobody@127.0.0.1:1/none"]).current_dir(folder.path());
    let said = process::run(managed(command, path.to_str().unwrap())).unwrap();
    assert_ne!(said.code, Some(0), "{said:?}");
    assert_eq!(manager.hear(Duration::from_millis(1)), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_gets_no_report_without_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::alone(&ClusterOptions::new().without_fsync()).unwrap();
    let path = folder.path().join("notify");
    let manager = Manager { socket: UnixDatagram::bind(&path).unwrap() };
    let command = place.command(["up", "--listen", "127.0.0.1:0", "--log-level", "debug"]).unwrap();
    let mut up = Up::start(managed(command, path.to_str().unwrap())).unwrap();
    let api = up.api();
    manager.wait_for("READY=1");
    manager.wait_for("WATCHDOG=1");
    place.cluster().unwrap().stop(Mode::Immediate).unwrap();
    until_ready(&api, 503).await;
    // A check that began before the stop may still succeed; later ones do not.
    wait_for_silences(&mut up.process, 1);
    manager.forget();
    wait_for_silences(&mut up.process, 3);
    assert_eq!(
        manager.hear(Duration::from_millis(1)),
        None,
        "a service without its store does not do its work"
    );
    place.cluster().unwrap().start_again().unwrap();
    until_ready(&api, 200).await;
    manager.wait_for("WATCHDOG=1");
    up.process.signal(Signal::TERM).unwrap();
    up.process.wait(START_LIMIT).unwrap();
}

/// Waits for `more` checks from now on after which no watchdog report was sent.
fn wait_for_silences(process: &mut Process, more: usize) {
    const SILENCE: &str = "gets no sign of life";
    let wanted = process.transcript().matches(SILENCE).count() + more;
    let seen = Cell::new(0);
    let heard = process.wait_for(LIMIT, |line| {
        seen.set(seen.get() + usize::from(line.contains(SILENCE)));
        (seen.get() >= wanted).then_some(())
    });
    heard.unwrap();
}

async fn until_ready(api: &Api, status: u16) {
    until(async || {
        let answer = api.get("/readyz").await.unwrap();
        if answer.status == status { Ok(()) } else { Err(format!("not {status}: {answer:?}")) }
    })
    .await
    .unwrap();
}
