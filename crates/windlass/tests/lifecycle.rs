//! Components of a process: order, failures, deadlines.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use windlass::lifecycle::{Component, Failure, HookError, Lifecycle, LifecycleError};

type Log = Arc<Mutex<Vec<String>>>;

/// Records which of its hooks ran, and misbehaves on request.
struct Part {
    name: &'static str,
    log: Log,
    start: Behaviour,
    stop: Behaviour,
}

#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    Works,
    Fails,
    Panics,
    Hangs,
}

impl Part {
    fn new(name: &'static str, log: &Log) -> Self {
        Self { name, log: log.clone(), start: Behaviour::Works, stop: Behaviour::Works }
    }

    async fn run(&self, hook: &str, behaviour: Behaviour) -> Result<(), Failure> {
        self.log.lock().unwrap().push(format!("{hook} {}", self.name));
        match behaviour {
            Behaviour::Works => Ok(()),
            Behaviour::Fails => Err(format!("no {} today", self.name).into()),
            Behaviour::Panics => panic!("{} is broken", self.name),
            Behaviour::Hangs => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Component for Part {
    async fn init(&mut self) -> Result<(), Failure> {
        self.run("init", Behaviour::Works).await
    }

    async fn start(&mut self) -> Result<(), Failure> {
        self.run("start", self.start).await
    }

    async fn stop(&mut self) -> Result<(), Failure> {
        self.run("stop", self.stop).await
    }

    fn start_deadline(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn stop_deadline(&self) -> Duration {
        Duration::from_secs(2)
    }
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

#[tokio::test]
async fn components_start_after_and_stop_before_their_dependencies() {
    let log = Log::default();
    let mut process = Lifecycle::builder()
        .component("intake", &["pool", "store"], Part::new("intake", &log))
        .component("pool", &["store"], Part::new("pool", &log))
        .component("store", &[], Part::new("store", &log))
        .build()
        .unwrap();
    assert_eq!(process.order().collect::<Vec<_>>(), ["store", "pool", "intake"]);

    process.start().await.unwrap();
    let started = ["init store", "init pool", "init intake", "start store", "start pool", "start intake"];
    assert_eq!(taken(&log), started);

    let report = process.stop().await;
    assert_eq!(taken(&log), ["stop intake", "stop pool", "stop store"]);
    assert!(report.is_clean());
    assert_eq!(report.to_string(), "intake stopped, pool stopped, store stopped");
}

#[tokio::test]
async fn stopping_twice_stops_each_component_once() {
    let log = Log::default();
    let mut process = Lifecycle::builder().component("store", &[], Part::new("store", &log)).build().unwrap();
    process.start().await.unwrap();
    process.stop().await;
    taken(&log);
    assert!(process.stop().await.components.is_empty());
    assert!(taken(&log).is_empty());
}

#[tokio::test]
async fn a_failing_start_stops_only_started_components() {
    let log = Log::default();
    let broken = Part { start: Behaviour::Fails, ..Part::new("pool", &log) };
    let mut process = Lifecycle::builder()
        .component("store", &[], Part::new("store", &log))
        .component("pool", &["store"], broken)
        .component("intake", &["pool"], Part::new("intake", &log))
        .build()
        .unwrap();
    let error = process.start().await.unwrap_err();
    assert_eq!(error.to_string(), "component \"pool\" could not start: no pool today");
    assert_eq!(error.stopped.to_string(), "store stopped");
    let ran = taken(&log);
    assert_eq!(ran[3..], ["start store", "start pool", "stop store"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_fails_at_its_deadline() {
    let log = Log::default();
    let hanging = Part { start: Behaviour::Hangs, ..Part::new("store", &log) };
    let mut process = Lifecycle::builder().component("store", &[], hanging).build().unwrap();
    let error = process.start().await.unwrap_err();
    assert!(matches!(error.error, HookError::DeadlineExceeded(after) if after == Duration::from_secs(5)));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_or_panicking_stop_does_not_affect_others() {
    let log = Log::default();
    let hanging = Part { stop: Behaviour::Hangs, ..Part::new("intake", &log) };
    let panicking = Part { stop: Behaviour::Panics, ..Part::new("pool", &log) };
    let mut process = Lifecycle::builder()
        .component("store", &[], Part::new("store", &log))
        .component("pool", &["store"], panicking)
        .component("intake", &["pool"], hanging)
        .build()
        .unwrap();
    process.start().await.unwrap();
    taken(&log);

    let before = tokio::time::Instant::now();
    let report = process.stop().await;
    assert_eq!(taken(&log), ["stop intake", "stop pool", "stop store"]);
    assert_eq!(
        report.to_string(),
        "intake failed: it did not end within 2s, pool failed: it panicked: pool is broken, store stopped"
    );
    assert!(!report.is_clean());
    assert!(before.elapsed() <= process.stop_deadline());
}

#[tokio::test]
async fn the_stop_deadline_is_at_least_the_sum_of_the_parts() {
    let log = Log::default();
    let two = || {
        Lifecycle::builder().component("store", &[], Part::new("store", &log)).component(
            "pool",
            &["store"],
            Part::new("pool", &log),
        )
    };
    assert_eq!(two().build().unwrap().stop_deadline(), Duration::from_secs(4));
    assert_eq!(
        two().stop_deadline(Duration::from_secs(9)).build().unwrap().stop_deadline(),
        Duration::from_secs(9)
    );
    let error = two().stop_deadline(Duration::from_secs(3)).build().unwrap_err();
    assert_eq!(
        error,
        LifecycleError::DeadlineTooShort { whole: Duration::from_secs(3), parts: Duration::from_secs(4) }
    );
    assert!(error.to_string().contains("3s") && error.to_string().contains("4s"), "{error}");
}

#[test]
fn a_circle_of_dependencies_is_refused_with_its_members() {
    let log = Log::default();
    let error = Lifecycle::builder()
        .component("api", &["worker"], Part::new("api", &log))
        .component("worker", &["store"], Part::new("worker", &log))
        .component("store", &["lock"], Part::new("store", &log))
        .component("lock", &["worker"], Part::new("lock", &log))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "components depend on each other in a circle: worker -> store -> lock -> worker"
    );
}

#[test]
fn an_unknown_dependency_is_refused_with_both_names() {
    let log = Log::default();
    let error =
        Lifecycle::builder().component("pool", &["stoer"], Part::new("pool", &log)).build().unwrap_err();
    let expected = LifecycleError::Unknown { component: "pool".to_owned(), dependency: "stoer".to_owned() };
    assert_eq!(error, expected);
}

#[test]
fn two_components_of_one_name_are_refused() {
    let log = Log::default();
    let error = Lifecycle::builder()
        .component("pool", &[], Part::new("pool", &log))
        .component("pool", &[], Part::new("pool", &log))
        .build()
        .unwrap_err();
    assert_eq!(error, LifecycleError::Duplicate("pool".to_owned()));
}
