//! ONE-LEASE, LIMIT and WF-ORDER after a crash of the server that forgot claims: their workers continue, and
//! learn of it.

use e2e::{
    postgres::{Place, client, tasks, until},
    process::Process,
};
use windlass_core::{JobChange, Name, NewTask, Store};
use windlass_scratch::{ClusterOptions, Mode};

use crate::target;

/// Most crashes until the server has forgotten a claim.
const CRASHES_MAX: usize = 20;
/// The log line of a worker that has lost leases and kept its registration.
const TOLD: &str = "lease lost: the store gives these tasks to no attempt here";

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_whose_claim_a_crash_forgot_is_cancelled() {
    // The server writes an asynchronous commit ten seconds later, or never.
    let options = ClusterOptions::new()
        .without_fsync()
        .set("wal_writer_delay", "10s")
        .set("wal_writer_flush_after", "100MB");
    let place = Place::alone(&options).unwrap();
    let cluster = place.cluster().unwrap();
    let target = target().await;
    target.hold();
    let workers: Vec<Process> = vec![place.worker(30).await.unwrap(), place.worker(30).await.unwrap()];
    let store = client(&place, place.url()).await.unwrap();
    let one = JobChange { concurrency: Some(Some(1)), ..JobChange::default() };
    let mut open = 0;
    let mut told = 0;
    for round in 0..CRASHES_MAX {
        // A plain task, one of a job with a limit of one, and the head of a workflow; the others wait for
        // these.
        let (job, workflow) = (format!("site-{round}"), format!("order-{round}"));
        until_done(async || store.gates().set_job(&name(&job), &one).await.is_ok()).await;
        let plain = tasks(&target, 1).unwrap().remove(0);
        let of_job = NewTask { job: Some(name(&job)), ..plain.clone() };
        let step = NewTask { workflow: Some(name(&workflow)), ..plain.clone() };
        store.enqueue(vec![plain, of_job.clone(), of_job, step.clone(), step]).await.unwrap();
        open += 3;
        until("the tasks run", || Ok(target.book().open == open)).await.unwrap();
        cluster.restart(Mode::Immediate).unwrap();
        let running = "SELECT count(*) FROM windlass.task WHERE state = 2";
        until("the store gives every task to a worker", || {
            Ok(place.count(running).unwrap_or(0) == u64::from(open))
        })
        .await
        .unwrap();
        // A worker that was told has cancelled its requests, and one attempt of each task continues.
        until("each task runs once", || Ok(target.book().open == open)).await.unwrap();
        told = workers.iter().map(|worker| worker.transcript().matches(TOLD).count()).sum();
        if told > 0 {
            break;
        }
    }
    assert!(told > 0, "the server forgot no claim in {CRASHES_MAX} crashes");
    target.release();
    until("all is done", || Ok(place.count("SELECT count(*) FROM windlass.task")? == 0)).await.unwrap();
    assert_eq!(store.audit().await.unwrap(), []);
    for worker in &workers {
        let said = worker.transcript();
        assert!(!said.contains("registering anew"), "a worker gave up its registration: {said}");
    }
}

/// Repeats a call while the server starts again.
async fn until_done(mut call: impl AsyncFnMut() -> bool) {
    while !call().await {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
