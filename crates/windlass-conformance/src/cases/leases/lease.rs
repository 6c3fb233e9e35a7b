//! Workers: registration, renewal, retirement; leases by monotonic time.

use std::time::Duration;

use windlass_core::{
    Counts, Error, NewTask, NewWorker, Outcome, State, WorkerCounts, WorkerId, WorkerReport, gate,
    worker::Registration,
};

use crate::{
    cases::rig::{MANY, Rig, SWEPT_AFTER, TTL, name, task},
    harness::Harness,
};

pub async fn a_registered_worker_is_listed_with_its_report(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let worker = rig.worker().await;
    let seen = rig.store.workers().await.unwrap().remove(0);
    assert_eq!((seen.id, seen.host.as_str(), seen.pid, seen.slots), (worker.id, "host", 1, 100));
    assert_eq!((seen.kinds, seen.queues), (["a", "b", "c"].map(name).to_vec(), vec![]));
    assert!(seen.live && !seen.draining);
    rig.advance(Duration::from_secs(3)).await;
    let report = WorkerReport {
        available: 60,
        in_flight: 40,
        draining: true,
        memory_usage: 0.8125,
        factor: 0.35,
        reason: "memory+latency".to_owned(),
        counts: counts(),
    };
    rig.store.renew(worker.id, report).await.unwrap();
    let renewed = rig.store.workers().await.unwrap().remove(0);
    assert_eq!((renewed.available, renewed.in_flight, renewed.draining), (60, 40, true));
    assert_eq!((seen.memory_usage, seen.factor, seen.reason.as_str()), (0.0, 1.0, ""));
    assert_eq!((renewed.memory_usage, renewed.factor), (0.8125, 0.35));
    assert_eq!(renewed.reason, "memory+latency");
    assert_eq!((seen.counts, &renewed.counts), (WorkerCounts::default(), &counts()));
    assert!(renewed.renewed_at > seen.renewed_at && renewed.registered_at == seen.registered_at);
    rig.advance(TTL).await;
    let stale = rig.store.workers().await.unwrap().remove(0);
    assert!(!stale.live && !stale.ended, "its renewals are missed, and no sweep has found it yet");
    rig.advance(Duration::from_secs(2)).await;
    rig.sweep().await;
    let swept = rig.store.workers().await.unwrap().remove(0);
    assert!(!swept.live && swept.ended);
    assert_eq!((swept.memory_usage, swept.factor, swept.reason.as_str()), (0.8125, 0.35, "memory+latency"));
    assert_eq!(swept.counts, counts());
}

/// What a worker of two queues may have done.
fn counts() -> WorkerCounts {
    let mut counts = WorkerCounts::default();
    *counts.of(&name("mail")) =
        Counts { started: 9, done: 5, retried: 2, busy_ms: 1 << 40, ..Counts::default() };
    *counts.of(&name("a \"b\" ü")) = Counts { dead: 1, cancelled: 3, returned: 4, ..Counts::default() };
    counts.rest.started = 7;
    counts
}

pub async fn a_renewal_replaces_what_a_worker_had_done(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let (first, second) = (rig.worker().await, rig.worker().await);
    let done = |done| {
        let mut counts = WorkerCounts::default();
        counts.of(&name("mail")).done = done;
        WorkerReport { counts, ..WorkerReport::default() }
    };
    for (worker, n) in [(&first, 3), (&second, 10), (&first, 4)] {
        rig.store.renew(worker.id, done(n)).await.unwrap();
    }
    let seen = rig.store.workers().await.unwrap();
    let of = |id| seen.iter().find(|worker| worker.id == id).map(|worker| worker.counts.clone()).unwrap();
    assert_eq!((of(first.id), of(second.id)), (done(4).counts, done(10).counts));
    rig.store.retire(first.id).await.unwrap();
    let seen = rig.store.workers().await.unwrap();
    let gone = seen.iter().find(|worker| worker.id == first.id).unwrap();
    assert_eq!(gone.counts, done(4).counts, "what a worker had done is known after it has left");
}

pub async fn slots_that_were_set_come_back_with_the_next_renewal(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let (worker, other) = (rig.worker().await, rig.worker().await);
    assert_eq!(worker.renew().await.unwrap().slots, Some(100));
    rig.store.set_worker_slots(worker.id, 7).await.unwrap();
    assert_eq!(worker.renew().await.unwrap().slots, Some(7));
    assert_eq!(other.renew().await.unwrap().slots, Some(100), "other workers keep their slots");
    let slots = async |id| {
        let workers = rig.store.workers().await.unwrap();
        workers.into_iter().find(|seen| seen.id == id).unwrap().slots
    };
    assert_eq!(slots(worker.id).await, 7);
}

pub async fn slots_are_set_within_bounds_and_of_live_workers_only(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let worker = rig.worker().await;
    let set = async |id, slots| rig.store.set_worker_slots(id, slots).await.map_err(|error| error.code());
    for slots in [0, 100_001, u32::MAX] {
        assert_eq!(set(worker.id, slots).await, Err("invalid"), "{slots}");
    }
    assert_eq!((set(worker.id, 1).await, set(worker.id, 100_000).await), (Ok(()), Ok(())));
    assert_eq!(set(WorkerId(987_654), 5).await, Err("not_found"));
    rig.advance(TTL + Duration::from_millis(500)).await;
    assert_eq!(set(worker.id, 5).await, Err("conflict"), "its lease has run out");
    rig.advance(Duration::from_secs(1)).await;
    rig.sweep().await;
    assert_eq!(set(worker.id, 5).await, Err("conflict"), "it was swept");
    let left = rig.worker().await;
    rig.store.retire(left.id).await.unwrap();
    assert_eq!(set(left.id, 5).await, Err("conflict"), "it has left");
}

pub async fn slots_that_were_set_move_the_window_of_jobs(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let worker = rig.worker().await;
    let tasks = (0..500).map(|_| NewTask { job: Some(name("j")), ..task("a") }).collect();
    rig.store.enqueue(tasks).await.unwrap();
    let ready =
        async || rig.store.lane_records().await.unwrap().iter().map(|lane| lane.depth.ready).sum::<u64>();
    assert_eq!(ready().await, u64::from(gate::window(100)));
    rig.store.set_worker_slots(worker.id, 200).await.unwrap();
    harness.settle_down(&*rig.store).await;
    assert_eq!(ready().await, u64::from(gate::window(200)), "more slots, a larger window");
    rig.assert_sound().await;
}

pub async fn ids_of_workers_are_never_reused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut last = WorkerId(0);
    for _ in 0..5 {
        let worker = rig.worker().await;
        assert!(worker.id > last);
        last = worker.id;
        rig.store.retire(worker.id).await.unwrap();
        rig.advance(Duration::from_hours(48)).await;
        rig.sweep().await;
    }
}

pub async fn a_worker_that_renews_keeps_its_lease(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    for _ in 0..10 {
        rig.advance(Duration::from_secs(9)).await;
        assert_eq!(rig.sweep().await, 0);
        worker.renew().await.unwrap();
    }
    assert_eq!((rig.state(id).await, rig.task(id).await.crashes), (State::Running, 0));
    worker.end(&claimed, Outcome::Done(None)).await;
}

pub async fn a_renewal_after_the_lease_is_refused_for_good(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let worker = rig.worker().await;
    rig.advance(TTL + Duration::from_millis(500)).await;
    assert_eq!(worker.renew().await, Err(Error::WorkerExpired), "also before the sweep");
    rig.advance(Duration::from_secs(1)).await;
    rig.sweep().await;
    assert_eq!(worker.renew().await, Err(Error::WorkerExpired));
    assert_eq!(rig.store.renew(WorkerId(987_654), WorkerReport::default()).await, Err(Error::WorkerExpired));
}

pub async fn an_expired_worker_cannot_claim(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    rig.advance(TTL + Duration::from_millis(500)).await;
    assert_eq!(worker.try_claim(1).await, Err(Error::WorkerExpired), "by the clock");
    rig.advance(Duration::from_secs(1)).await;
    rig.sweep().await;
    assert_eq!(worker.try_claim(1).await, Err(Error::WorkerExpired), "by the row");
    assert_eq!(rig.state(id).await, State::Ready);
    rig.assert_sound().await;
}

pub async fn a_retired_worker_leaves_its_tasks_ready(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(MANY).await;
    worker.end(&tasks[1], Outcome::Done(None)).await;
    assert_eq!(rig.store.retire(worker.id).await.unwrap(), 2);
    assert_eq!(worker.try_claim(1).await, Err(Error::WorkerExpired));
    assert_eq!(worker.renew().await, Err(Error::WorkerExpired));
    for id in [ids[0], ids[2]] {
        let seen = rig.task(id).await;
        assert_eq!((seen.state, seen.attempt, seen.crashes), (State::Ready, 0, 0));
    }
    assert_eq!(rig.worker().await.claim_ids(MANY).await, [ids[0], ids[2]]);
    rig.assert_sound().await;
}

pub async fn a_jump_of_the_wall_clock_moves_no_lease(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    let hour = Duration::from_hours(1);
    for to in [harness.now().await.after(hour), harness.now().await.before(hour)] {
        if !harness.jump_wall(to).await {
            return;
        }
        assert_eq!(rig.sweep().await, 0);
        worker.renew().await.unwrap();
        assert_eq!(worker.claim_ids(1).await, []);
    }
    worker.end(&claimed, Outcome::Release).await;
    let lost = worker.claim_one().await;
    assert_eq!(lost.id, id);
    rig.advance(SWEPT_AFTER).await;
    assert_eq!(rig.sweep().await, 1, "an hour back in wall time delays no recovery");
}

pub async fn a_worker_keeps_the_owner_that_registered_it(harness: &dyn Harness) {
    // Behind a server, the server decides the owner.
    if !harness.keeps_tokens() {
        return;
    }
    let rig = Rig::open(harness).await;
    let worker = |host: &str| NewWorker {
        host: host.to_owned(),
        pid: 1,
        version: "0".to_owned(),
        kinds: vec![name("a")],
        queues: vec![name("q")],
        slots: 1,
        lease_ttl: Duration::from_secs(10),
    };
    let owned = rig.store.register_remote(worker("one"), Some("token abc")).await.unwrap();
    let free = rig.store.register_remote(worker("two"), None).await.unwrap();
    let local = rig.store.register(worker("three")).await.unwrap();
    let registered = |owner: Option<&str>| {
        Some(Registration {
            owner: owner.map(str::to_owned),
            kinds: vec![name("a")],
            queues: vec![name("q")],
        })
    };
    let found = async |rig: &Rig<'_>| {
        let mut found = Vec::new();
        for worker in [owned, free, local, WorkerId(i64::MAX)] {
            found.push(rig.store.registration(worker).await.unwrap());
        }
        found
    };
    let expected = [registered(Some("token abc")), registered(None), registered(None), None];
    assert_eq!(found(&rig).await, expected);
    rig.store.retire(owned).await.unwrap();
    assert_eq!(found(&rig).await, expected, "also known of a worker that is gone");
    if let Some(rig) = rig.reopen().await {
        assert_eq!(found(&rig).await, expected);
    }
}
