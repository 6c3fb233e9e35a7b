use std::fs;

use tokio::sync::Semaphore;

use super::*;
use crate::pool::{Handle, Pool};

/// A control group in a folder of the test.
struct Group {
    root: tempfile::TempDir,
    limit: u64,
}

impl Group {
    fn new(limit: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::create_dir_all(root.path().join("sys/fs/cgroup")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), "0::/\n").unwrap();
        fs::write(root.path().join("sys/fs/cgroup/memory.max"), limit.to_string()).unwrap();
        let group = Self { root, limit };
        group.uses(10);
        group
    }

    fn uses(&self, percent: u64) {
        let used = (self.limit * percent / 100).to_string();
        fs::write(self.root.path().join("sys/fs/cgroup/memory.current"), used).unwrap();
    }

    fn controller(&self, config: AdmissionConfig) -> Controller {
        Controller::reading_below(config, self.root.path()).unwrap()
    }
}

/// A pool full of tasks that wait for a permit.
struct Full {
    pool: Pool,
    gate: Arc<Semaphore>,
    handles: Vec<Handle<()>>,
}

impl Full {
    fn new(controller: &Controller, size: usize, tasks: usize) -> Self {
        let pool = Pool::builder().size(size).buffer(tasks).admission(controller.clone()).build().unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let wait = || {
            let gate = gate.clone();
            pool.dispatch(async move { gate.acquire().await.unwrap().forget() }).unwrap()
        };
        let handles = (0..tasks).map(|_| wait()).collect();
        Self { pool, gate, handles }
    }

    /// The number of running tasks, once all that can start have. A test has one thread, so a yield lets
    /// every consumer run.
    async fn taken(&self) -> usize {
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
        let gauges = self.pool.gauges();
        assert_eq!(gauges.starting, 0);
        gauges.running
    }

    fn buffered(&self) -> usize {
        self.pool.gauges().buffered
    }

    /// Lets `tasks` tasks end, and waits until they have.
    async fn end(&self, tasks: u64) {
        let ended = self.pool.gauges().completed + tasks;
        self.gate.add_permits(tasks as usize);
        while self.pool.gauges().completed < ended {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_new_pool_runs_a_tenth_and_twice_as_much_after_each_round() {
    let controller = Group::new(1 << 20).controller(AdmissionConfig::default());
    let full = Full::new(&controller, 100, 300);
    assert_eq!((full.taken().await, full.buffered()), (10, 290));
    assert_eq!(controller.status(100).reasons.to_string(), "start");
    for (round, next) in [(10, 20), (20, 40), (40, 80), (80, 100)] {
        full.end(round - 1).await;
        controller.sample();
        assert_eq!(full.taken().await as u64, round, "one is missing from the round");
        full.end(1).await;
        controller.sample();
        assert_eq!(full.taken().await as u64, next.min(300 - full.pool.gauges().completed));
    }
    assert_eq!(controller.status(100).allowed, 100);
    assert!(controller.status(100).reasons.is_empty());
}

/// Past the slow start: memory was ample for a while.
fn steady(group: &Group, config: AdmissionConfig) -> Controller {
    let controller = group.controller(config);
    let memory = Some(MemorySample { used: 0, limit: 1 << 40 });
    let mut state = controller.lock();
    while state.admission.is_starting() {
        state.admission.sample(&Seen { memory, slots: 100, ..Seen::default() });
    }
    drop(state);
    controller
}

#[tokio::test]
async fn short_memory_lowers_the_limit_and_aborts_no_task() {
    let group = Group::new(1 << 20);
    let controller = steady(&group, AdmissionConfig::default());
    let full = Full::new(&controller, 100, 200);
    assert_eq!(full.taken().await, 100);
    group.uses(85);
    controller.sample();
    assert_eq!((controller.status(100).allowed, full.taken().await), (50, 100), "nothing is cut off");
    assert_eq!(controller.status(100).memory_usage.map(|usage| (usage * 100.0).round()), Some(85.0));
    full.end(30).await;
    assert_eq!((full.taken().await, full.buffered()), (70, 100), "nothing starts in their place");
    group.uses(96);
    controller.sample();
    full.end(69).await;
    assert_eq!((full.taken().await, full.buffered()), (1, 100), "nothing starts while anything runs");
    full.end(1).await;
    assert_eq!((full.taken().await, full.buffered()), (1, 99), "and one while nothing does");
    group.uses(50);
    for _ in 0..60 {
        controller.sample();
        full.taken().await;
    }
    assert_eq!((full.taken().await, full.buffered()), (100, 0), "the buffer is let in by itself");
    full.end(100).await;
    for handle in full.handles {
        handle.await.unwrap();
    }
}

#[tokio::test]
async fn one_controller_serves_several_pools() {
    let group = Group::new(1 << 20);
    let controller = steady(&group, AdmissionConfig::default());
    let (large, small) = (Full::new(&controller, 40, 80), Full::new(&controller, 10, 20));
    group.uses(81);
    controller.sample();
    large.end(40).await;
    small.end(10).await;
    assert_eq!((large.taken().await, small.taken().await), (20, 5));
}

#[tokio::test]
async fn a_busy_pool_recovers_beside_an_idle_one() {
    let group = Group::new(1 << 20);
    let controller = steady(&group, AdmissionConfig::default());
    let idle = Pool::builder().size(900).admission(controller.clone()).build().unwrap();
    let busy = Full::new(&controller, 20, 60);
    group.uses(96);
    controller.sample();
    busy.end(19).await;
    assert_eq!((busy.taken().await, idle.allowed()), (1, 1));
    group.uses(10);
    for _ in 0..100 {
        controller.sample();
        busy.taken().await;
    }
    assert_eq!((busy.taken().await, idle.allowed()), (20, 900));
}

#[tokio::test]
async fn when_off_it_reports_memory_and_changes_nothing() {
    let group = Group::new(1 << 20);
    let controller = group.controller(AdmissionConfig::off());
    let full = Full::new(&controller, 100, 150);
    group.uses(99);
    controller.sample();
    assert_eq!(full.taken().await, 100);
    let status = controller.status(100);
    assert_eq!((status.allowed, status.factor, status.reasons.is_empty()), (100, 1.0, true));
    assert_eq!(status.memory_usage.map(|usage| (usage * 100.0).round()), Some(99.0));
}

#[tokio::test]
async fn slots_change_while_tasks_run_and_none_is_cut_off() {
    let group = Group::new(1 << 20);
    let controller = steady(&group, AdmissionConfig::default());
    let full = Full::new(&controller, 20, 60);
    full.pool.resize(30);
    assert_eq!((full.pool.size(), full.taken().await), (30, 30), "more start at once");
    full.pool.resize(5);
    assert_eq!(full.taken().await, 30);
    full.end(26).await;
    assert_eq!((full.taken().await, full.buffered()), (4 + 1, 29));
}

#[tokio::test]
async fn slow_tasks_of_a_watched_kind_leave_seven_tenths() {
    let kind = |name: &str| Name::new("kind", name).unwrap();
    let ms = Duration::from_millis;
    let config = AdmissionConfig {
        latency_threshold: Some(ms(100)),
        kind_latency_thresholds: vec![(kind("slow"), ms(5_000))],
        ..AdmissionConfig::default()
    };
    let group = Group::new(1 << 20);
    let controller = steady(&group, config);
    controller.watch(&[kind("slow"), kind("quick")]);
    let note = |name: &str, took| (0..50).for_each(|_| controller.note(&kind(name), took));
    note("slow", ms(2_000));
    note("quick", ms(20));
    note("unknown", ms(99_999));
    controller.sample();
    assert_eq!(controller.status(100).allowed, 100, "each kind has a threshold of its own");
    note("quick", ms(300));
    controller.sample();
    assert_eq!(controller.status(100).allowed, 70);
    assert_eq!(controller.status(100).reasons.to_string(), "latency");
    assert!(controller.watches_latency() && !group.controller(AdmissionConfig::default()).watches_latency());
}
