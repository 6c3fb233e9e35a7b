//! A crash of the server that forgets claims, which do not wait for the disk, while their workers are still
//! alive.

use std::collections::HashSet;

use windlass_conformance::cases::rig::{Hand, MANY, Rig, lease_of, of_job, step_of, task};
use windlass_core::{Claimed, Error, LeaseRef, source::Renewed};
use windlass_postgres::Options;
use windlass_scratch::{Cluster, ClusterOptions, Mode};

use crate::{support::PostgresHarness, wait::until};

/// Rounds. In each of them the server may by chance have written the claim before it is killed.
const ROUNDS_MAX: usize = 20;

/// A server that flushes asynchronous commits only after ten seconds: a crash loses them.
fn forgetful() -> Cluster {
    let options = ClusterOptions::new()
        .without_fsync()
        .set("wal_writer_delay", "10s")
        .set("wal_writer_flush_after", "100MB");
    Cluster::start(&options).unwrap()
}

/// Renews until the server answers.
async fn renewed(worker: &Hand<'_>) -> Renewed {
    let mut answer = None;
    until("the worker has renewed", async || {
        answer = worker.renew().await.ok();
        answer.is_some()
    })
    .await;
    answer.unwrap()
}

/// Claims until the server answers. A crash is no reason to refuse a worker whose lease is in force.
async fn claimed(worker: &mut Hand<'_>) -> Vec<Claimed> {
    let mut answer = None;
    until("the worker has claimed", async || {
        answer = match worker.try_claim(MANY).await {
            Ok(answer) => Some(answer.tasks),
            Err(error) => {
                assert_ne!(error, Error::WorkerExpired);
                let _ = worker.store.unclaim(worker.id, worker.claim_no).await;
                None
            }
        };
        answer.is_some()
    })
    .await;
    answer.unwrap()
}

/// Claims until there are so many tasks: a claim may bring fewer than are ready.
async fn claimed_up_to(worker: &mut Hand<'_>, tasks: &mut Vec<Claimed>, n: usize) {
    until("so many tasks are claimed", async || {
        if tasks.len() < n {
            tasks.extend(claimed(worker).await);
        }
        tasks.len() >= n
    })
    .await;
}

/// The leases that the worker has lost, from a comparison that handed nothing back.
async fn lost(worker: &Hand<'_>, leases: &[LeaseRef]) -> Vec<LeaseRef> {
    let mut lost = None;
    until("leases are compared", async || {
        lost = worker.store.reconcile(worker.id, worker.claim_no, leases).await.ok().map(|it| it.lost);
        lost.is_some()
    })
    .await;
    lost.unwrap()
}

/// Hands all leases back, and waits until that is on disk.
async fn hand_back(workers: [&Hand<'_>; 2]) {
    for worker in workers {
        until("leases are handed back", async || {
            worker.store.reconcile(worker.id, worker.claim_no, &[]).await.is_ok()
        })
        .await;
    }
}

#[tokio::test]
async fn a_forgotten_claim_is_told_and_its_number_not_reused() {
    let cluster = forgetful();
    let harness = PostgresHarness::at(&cluster.url());
    let rig = Rig::open(&harness).await;
    rig.limit("site", 1).await;
    // A plain task, one of a job that lets one run at a time, and the head of a workflow.
    rig.add_all(vec![task("a"), of_job("site"), of_job("site"), step_of("orders"), step_of("orders")]).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let mut given: HashSet<LeaseRef> = HashSet::new();
    let mut epoch = renewed(&first).await.epoch;
    let mut rounds_with_losses = 0;
    for round in 0..ROUNDS_MAX {
        let mut tasks = Vec::new();
        claimed_up_to(&mut first, &mut tasks, 3).await;
        let held: Vec<LeaseRef> = tasks.iter().map(lease_of).collect();
        assert_eq!(held.len(), 3);
        assert!(held.iter().all(|lease| given.insert(*lease)), "{held:?} was given before");
        cluster.restart(Mode::Immediate).unwrap();
        // The first call, a renewal or a claim, begins the next epoch.
        let mut taken = if round % 2 == 0 { claimed(&mut second).await } else { Vec::new() };
        let now = renewed(&first).await.epoch;
        assert!(now > epoch, "{now:?} after {epoch:?}");
        epoch = now;
        let lost = lost(&first, &held).await;
        claimed_up_to(&mut second, &mut taken, lost.len()).await;
        taken.extend(claimed(&mut second).await);
        // The second worker has the tasks that the first one was told it had lost, and no others.
        let ids = |leases: &mut dyn Iterator<Item = i64>| leases.collect::<HashSet<_>>();
        assert_eq!(
            ids(&mut lost.iter().map(|lease| lease.id.raw())),
            ids(&mut taken.iter().map(|task| task.id.raw()))
        );
        for task in &taken {
            assert!(given.insert(lease_of(task)), "{:?} was given before", lease_of(task));
        }
        let (ready, running, _) = rig.figures("site").await;
        assert_eq!(ready + running, 1);
        rig.assert_sound().await;
        hand_back([&first, &second]).await;
        rounds_with_losses += usize::from(lost.len() == 3);
        if rounds_with_losses == 2 {
            return;
        }
    }
    panic!("the server forgot no claim in {ROUNDS_MAX} rounds");
}

#[tokio::test]
async fn a_durable_claim_outlives_a_crash() {
    let cluster = forgetful();
    let harness = PostgresHarness::at(&cluster.url()).with(|it| Options { durable_claims: true, ..it });
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    for _ in 0..3 {
        let mut tasks = Vec::new();
        claimed_up_to(&mut worker, &mut tasks, 3).await;
        let held: Vec<LeaseRef> = tasks.iter().map(lease_of).collect();
        assert_eq!(held.len(), 3);
        cluster.restart(Mode::Immediate).unwrap();
        renewed(&worker).await;
        assert_eq!(lost(&worker, &held).await, []);
        hand_back([&worker, &worker]).await;
    }
}

/// A server that is shut down in order forgets nothing, and workers need not compare their leases.
#[tokio::test]
async fn a_stop_in_order_begins_no_epoch() {
    let cluster = forgetful();
    let harness = PostgresHarness::at(&cluster.url());
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 1).await;
    let mut worker = rig.worker().await;
    let (before, held) = (renewed(&worker).await.epoch, lease_of(&worker.claim_one().await));
    cluster.restart(Mode::Fast).unwrap();
    assert_eq!(renewed(&worker).await.epoch, before);
    assert_eq!(lost(&worker, &[held]).await, []);
}
