//! The metrics of a worker: each event counts once, by its outcome.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::Semaphore;
use windlass::{
    Error, Name, NewTask, Outcome, Payload, TaskState, WorkerConfig,
    store::{Source as _, Store},
    telemetry::{self, Exposition},
    worker::{Metrics, WorkerHandle},
};

use crate::{
    rig::{Running, act, enqueue, gated, memory, quick, staged, start, until, until_state},
    staged::{Act, On},
};

fn exposition(worker: &WorkerHandle) -> Option<Exposition> {
    Exposition::new(worker, telemetry::Options::default())
}

/// One scrape.
async fn scrape(exposition: &Exposition) -> String {
    tokio::select! {
        never = exposition.watch_store() => match never {},
        text = exposition.text() => text,
    }
}

/// The metrics of a worker after it has stopped.
async fn stop_and_scrape(worker: Running) -> String {
    let metrics = exposition(&worker.handle).unwrap();
    worker.stop().await;
    scrape(&metrics).await
}

#[track_caller]
fn assert_shows(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|shown| shown == *line), "{line} is missing in\n{page}");
    }
}

async fn add(store: &dyn Store, n: u8, job: Option<&str>) {
    let mut task = NewTask::new("t", Payload::json(&n).unwrap()).unwrap();
    task.job = job.map(|job| Name::new("job", job).unwrap());
    store.enqueue(vec![task]).await.unwrap();
}

#[tokio::test]
async fn every_end_is_counted_once_by_its_outcome() {
    let store = staged();
    // A batch that must be sent again counts as one batch.
    store.next(On::Settle, [Act::Fail(Error::Unavailable("down".into())), Act::LoseAnswer]);
    let hour = Duration::from_hours(1);
    let handler = act(move |context| async move {
        match context.payload().decode::<u8>().unwrap() {
            0 => Outcome::Done(None),
            1 => Outcome::retry_after(hour, "no"),
            2 => Outcome::snooze(hour),
            3 => Outcome::cancel("no"),
            _ => Outcome::dead("no"),
        }
    });
    for n in [0, 0, 0, 1, 1, 2, 3, 4] {
        add(&*store, n, None).await;
    }
    let worker = start(store.clone(), handler, quick());
    until("all are settled", async || worker.status().settled == 8).await;
    let page = stop_and_scrape(worker).await;
    assert_shows(
        &page,
        &[
            "worker_tasks_completed_total 3",
            "worker_task_duration_seconds_count 8",
            "worker_claim_size_sum 8",
            "windlass_settle_batch_size_sum 8",
            "windlass_task_retries_total 2",
            "windlass_pickup_latency_seconds_count 8",
            "windlass_settle_failures_total 2",
            "windlass_tasks_claimed_total{kind=\"t\"} 8",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"done\"} 3",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"retry\"} 2",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"snooze\"} 1",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"release\"} 0",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"dead\"} 1",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"cancelled\"} 1",
        ],
    );
}

#[tokio::test]
async fn a_refused_end_counts_only_as_a_lost_lease() {
    let store = staged();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 1).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    // The store hands the task back without telling the worker, as after an expiry.
    assert_eq!(store.reconcile(worker.status().worker, u64::MAX, &[]).await.unwrap().handed_back, 1);
    until("it runs again under a new lease", async || handler.calls.load(Ordering::SeqCst) == 2).await;
    gate.add_permits(1);
    until_state(&*store, &ids, TaskState::Done).await;
    until("both are answered", async || worker.status().unsettled == 0).await;
    let page = stop_and_scrape(worker).await;
    assert_shows(
        &page,
        &[
            "windlass_lease_losses_total 1",
            "windlass_tasks_claimed_total{kind=\"t\"} 2",
            "windlass_tasks_settled_total{kind=\"t\",outcome=\"done\"} 1",
        ],
    );
}

#[tokio::test]
async fn claims_are_counted_by_their_result() {
    let store = staged();
    store.next(On::Claim, vec![Act::Fail(Error::Unavailable("down".into())); 2]);
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    let ids = enqueue(&*store, 3).await;
    until_state(&*store, &ids, TaskState::Done).await;
    until("an empty one", async || worker.status().claims_empty > 0).await;
    let page = stop_and_scrape(worker).await;
    assert_shows(&page, &["worker_claims_total{result=\"failed\"} 2", "worker_claim_size_sum 3"]);
    let figure = |series: &str| -> u64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} is missing")).parse().unwrap()
    };
    let results = ["tasks", "empty", "failed"].map(|result| {
        let n = figure(&format!("worker_claims_total{{result=\"{result}\"}}"));
        assert!(n > 0, "{result}");
        n
    });
    assert_eq!(results.iter().sum::<u64>(), figure("windlass_claim_duration_seconds_count"));
    // A failed claim has no size.
    assert_eq!(results[0] + results[1], figure("worker_claim_size_count"));
}

#[tokio::test]
async fn a_second_scrape_adds_the_ends_of_each_job_once() {
    let store = memory();
    let gate = Arc::new(Semaphore::new(0));
    let worker = start(store.clone(), gated(&gate), quick());
    let metrics = exposition(&worker.handle).unwrap();
    for _ in 0..2 {
        add(&*store, 0, Some("tenant-a")).await;
        add(&*store, 0, Some("tenant-b")).await;
    }
    until("all run", async || worker.status().running == 4).await;
    let running =
        ["tenant-a", "tenant-b"].map(|job| format!("windlass_job_running_tasks{{job_name=\"{job}\"}} 2"));
    let page = scrape(&metrics).await;
    assert_shows(&page, &running.each_ref().map(String::as_str));
    gate.add_permits(4);
    // Ends are counted before they leave this figure.
    until("all are settled", async || worker.status().settled == 4 && worker.status().unsettled == 0).await;
    for _ in 0..2 {
        let page = scrape(&metrics).await;
        assert_shows(
            &page,
            &[
                "windlass_job_tasks_settled_total{job_name=\"tenant-a\"} 2",
                "windlass_job_tasks_settled_total{job_name=\"tenant-b\"} 2",
                "windlass_job_tasks_settled_total{job_name=\"_other\"} 0",
                "windlass_job_running_tasks{job_name=\"_other\"} 0",
            ],
        );
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_keeps_no_metrics_works_all_the_same() {
    let store = memory();
    let config = WorkerConfig { metrics: Metrics::Off, ..quick() };
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), config);
    assert!(exposition(&worker.handle).is_none());
    let ids = enqueue(&*store, 3).await;
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}
