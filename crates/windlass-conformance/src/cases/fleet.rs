//! A fleet at work: claims, ends, deaths and sweeps at the same time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use windlass_core::{
    Claimed, Demand, Error, NewTask, NewWorker, Result, Rules, SettleBatch, SettleItem, Settlement, State,
    Store, TaskId, WorkerId, WorkerReport,
};

use super::rig::{Rig, TTL, name, task};
use crate::harness::Harness;

const WORKERS: u32 = 6;
const TASKS: usize = 60;
/// After this many rounds of the sweeper, an unfinished task counts as stuck.
const ROUNDS_MAX: u32 = 5_000;

/// What one member of the fleet saw.
#[derive(Default)]
struct Seen {
    claims: Vec<(TaskId, u32)>,
    done: Vec<TaskId>,
}

/// Every claim has its own lease number, without gaps, and every task is done once although workers die.
pub async fn a_fleet_with_deaths_finishes_every_task_once(harness: &dyn Harness) {
    a_fleet_finishes_every_task_once(harness, WORKERS).await;
}

/// The same with a fleet of another size, for stores that many processes share.
pub async fn a_fleet_finishes_every_task_once(harness: &dyn Harness, workers: u32) {
    let rules = Rules { max_crashes: 1_000, ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let tasks = vec![NewTask { max_attempts: Some(1_000), ..task("a") }; TASKS];
    rig.store.enqueue(tasks).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut members = Vec::new();
    for _ in 0..workers {
        let store = harness.connect(&rig.store).await;
        members.push(tokio::spawn(member(store, Arc::clone(&stop))));
    }
    let mut rounds = 0;
    while unfinished(&rig).await > 0 && rounds < ROUNDS_MAX {
        rounds += 1;
        rig.advance(Duration::from_millis(700)).await;
        rig.promote().await;
        rig.sweep().await;
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::Release);
    let (mut leases, mut done) = (BTreeMap::<TaskId, Vec<u32>>::new(), BTreeMap::<TaskId, u32>::new());
    for member in members {
        let seen = member.await.unwrap();
        for (id, lease) in seen.claims {
            leases.entry(id).or_default().push(lease);
        }
        for id in seen.done {
            *done.entry(id).or_default() += 1;
        }
    }
    let all = rig.all().await;
    assert_eq!(all.len(), TASKS);
    for task in all {
        assert_eq!((task.state, done.get(&task.id)), (State::Done, Some(&1)), "{}", task.id);
        let mut leases = leases.remove(&task.id).unwrap_or_default();
        leases.sort_unstable();
        assert_eq!(leases, (1..=task.lease).collect::<Vec<_>>(), "{}", task.id);
    }
    rig.assert_sound().await;
}

async fn unfinished(rig: &Rig<'_>) -> u64 {
    let lanes = rig.store.lane_records().await.unwrap();
    lanes.iter().map(|lane| lane.depth.scheduled + lane.depth.ready + lane.depth.running).sum()
}

async fn member(store: Arc<dyn Store>, stop: Arc<AtomicBool>) -> Seen {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Acquire) {
        let worker = register(&*store).await;
        // The worker expired, or died with the tasks that it held: continue with a new registration.
        let _ = live(&*store, worker, &mut seen, &stop).await;
    }
    seen
}

async fn register(store: &dyn Store) -> WorkerId {
    let worker = NewWorker {
        host: "host".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        kinds: vec![name("a")],
        queues: Vec::new(),
        slots: 3,
        lease_ttl: TTL,
    };
    store.register(worker).await.unwrap()
}

/// Works until the worker stops: by the fate of a task, or because its lease ran out.
async fn live(store: &dyn Store, worker: WorkerId, seen: &mut Seen, stop: &AtomicBool) -> Result<()> {
    for number in 1.. {
        if stop.load(Ordering::Acquire) {
            break;
        }
        store.renew(worker, WorkerReport::default()).await?;
        let lanes = store.lanes(&[name("a")], &[]).await?.iter().map(|lane| lane.id).collect();
        let demand = Demand::new(worker, number, lanes, 3);
        let tasks = store.claim(&[demand]).await?.tasks;
        seen.claims.extend(tasks.iter().map(|task| (task.id, task.lease)));
        if tasks.iter().any(|task| fate(task) == 0) {
            return Err(Error::WorkerExpired);
        }
        let settlement = |task: &Claimed| match fate(task) {
            1 => Settlement::Release,
            2 => Settlement::Snooze { due_at: task.claimed_at },
            3 => Settlement::Retry { due_at: task.claimed_at.after(TTL), error: "x".to_owned() },
            _ => Settlement::Done { output: None, note: None },
        };
        let items: Vec<_> = tasks.iter().map(|task| SettleItem::new(task, settlement(task))).collect();
        let ends: Vec<_> = tasks.iter().filter(|task| fate(task) > 3).map(|task| task.id).collect();
        let batch = SettleBatch { worker, settler_no: 0, batch_no: number, items };
        let fenced = store.settle(Arc::new(batch)).await?.fenced;
        seen.done.extend(ends.into_iter().filter(|id| !fenced.contains(id)));
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// How an attempt ends: the same for the same lease, different for the next.
fn fate(task: &Claimed) -> u64 {
    let mixed = (task.id.raw() as u64 ^ (u64::from(task.lease) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) % 10
}
