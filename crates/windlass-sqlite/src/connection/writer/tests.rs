//! Groups, failures within them, and a full disk.

use std::sync::Mutex;

use tokio::sync::oneshot;
use windlass_core::{Enqueued, NewTask, Payload, Result, State};

use super::*;
use crate::{
    connection::{
        call::{Call, QUEUE_MAX},
        open,
        options::{Location, Options},
        tx::Step,
    },
    enqueue,
    upkeep::migrate,
};

fn writer() -> Writer {
    let options = Options::default();
    open::open(&Location::Memory, options, migrate::MIGRATIONS).unwrap().writer
}

fn tasks(n: usize, bytes: usize) -> Vec<NewTask> {
    vec![NewTask::new("a", Payload::bytes(vec![0; bytes])).unwrap(); n]
}

fn add<T: Send + 'static>(
    shared: &Shared,
    work: impl FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static,
) -> oneshot::Receiver<Result<T>> {
    let (request, answer) = Call::pair(Class::Client, Sync::Durable, work);
    shared.queue.push(request);
    answer
}

fn add_tasks(shared: &Shared, n: usize, bytes: usize) -> oneshot::Receiver<Result<Vec<Enqueued>>> {
    let tasks = tasks(n, bytes);
    add(shared, move |tx| enqueue::enqueue(tx, &tasks))
}

#[test]
fn a_request_that_fails_half_way_fails_alone() {
    let writer = writer();
    let shared = Arc::clone(&writer.shared);
    let mut first = add_tasks(&shared, 2, 1);
    let mut broken = add(&shared, |tx| {
        enqueue::enqueue(tx, &tasks(5, 1))?;
        tx.conn.execute("INSERT INTO lane (id, queue, kind) VALUES (1, 'q', 'k')", [])?;
        Ok(())
    });
    let mut last = add_tasks(&shared, 3, 1);
    let mut ready = add(&shared, |tx| {
        let rows: i64 = tx.conn.query_row("SELECT count(*) FROM task", [], |row| row.get(0))?;
        Ok((rows, tx.memory.lanes().iter().map(|lane| lane.depth.ready).sum::<u64>()))
    });
    shared.queue.close(closed());
    writer.run();
    assert_eq!(first.try_recv().unwrap().unwrap().len(), 2);
    assert_eq!(broken.try_recv().unwrap().unwrap_err().code(), "unavailable");
    assert_eq!(last.try_recv().unwrap().unwrap().len(), 3);
    assert_eq!(ready.try_recv().unwrap().unwrap(), (5, 5), "rows and figures without the failed one");
}

#[test]
fn requests_that_wait_together_share_one_commit() {
    let mut writer = writer();
    let shared = Arc::clone(&writer.shared);
    let mut answers: Vec<_> = (0..64).map(|_| add_tasks(&shared, 1, 1)).collect();
    shared.queue.take_all(&mut writer.backlog, Wait::No);
    assert_eq!(writer.serve_group(), 64, "one group is one transaction");
    assert!(answers.iter_mut().all(|answer| answer.try_recv().unwrap().is_ok()));
}

#[test]
fn a_full_disk_fails_only_the_request_that_does_not_fit() {
    let mut writer = writer();
    let shared = Arc::clone(&writer.shared);
    let pages: i64 = writer.conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    writer.conn.pragma_update_and_check(None, "max_page_count", pages + 40, |_| Ok(())).unwrap();
    let mut small = add_tasks(&shared, 10, 100);
    let mut large = add_tasks(&shared, 100, 10_000);
    let mut after = add_tasks(&shared, 10, 100);
    shared.queue.take_all(&mut writer.backlog, Wait::No);
    while !writer.backlog_is_empty() {
        writer.serve_group();
    }
    assert_eq!(small.try_recv().unwrap().unwrap().len(), 10);
    assert_eq!(large.try_recv().unwrap().unwrap_err().code(), "store_full");
    assert_eq!(after.try_recv().unwrap().unwrap().len(), 10);
    assert!(!writer.has_failed());
    let lane = &writer.memory.lanes()[0];
    assert_eq!(lane.depth.ready, 20);
    let rows: i64 = writer
        .conn
        .query_row("SELECT count(*) FROM task WHERE state = ?1", [State::Ready.code()], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 20);
}

#[test]
fn a_queue_that_is_full_answers_at_once() {
    let writer = writer();
    let shared = Arc::clone(&writer.shared);
    let mut answers: Vec<_> = (0..=QUEUE_MAX).map(|_| add_tasks(&shared, 1, 1)).collect();
    let refused = answers.pop().unwrap().try_recv().unwrap().unwrap_err();
    assert_eq!((refused.code(), refused.is_retryable()), ("unavailable", true));
    assert!(answers.iter_mut().all(|answer| answer.try_recv().is_err()), "the others still wait");
    shared.queue.close(closed());
    writer.run();
    assert!(answers.iter_mut().all(|answer| answer.try_recv().unwrap().is_ok()));
}

#[test]
fn claims_are_served_after_at_most_128_client_requests() {
    let writer = writer();
    let shared = Arc::clone(&writer.shared);
    let order = Arc::new(Mutex::new(Vec::new()));
    let push = |class| {
        let order = Arc::clone(&order);
        let (request, _) = Call::pair(class, Sync::Read, move |_| {
            order.lock().unwrap().push(class);
            Ok(())
        });
        shared.queue.push(request);
    };
    for class in [Class::Maintenance, Class::Bulk, Class::Claim, Class::Control] {
        push(class);
    }
    (0..200).for_each(|_| push(Class::Client));
    shared.queue.close(closed());
    writer.run();
    let order = order.lock().unwrap();
    let claim = order.iter().position(|class| *class == Class::Claim).unwrap();
    assert_eq!((order[0], order[1], claim), (Class::Control, Class::Client, 129));
    assert_eq!(order[202..], [Class::Bulk, Class::Maintenance]);
}

#[test]
fn a_claim_takes_tasks_that_its_own_commit_enqueued() {
    let mut writer = writer();
    let shared = Arc::clone(&writer.shared);
    let (claim, mut claimed) = Call::pair(Class::Claim, Sync::Relaxed, |tx| {
        Ok(tx.memory.lanes().iter().map(|lane| lane.depth.ready).sum::<u64>())
    });
    shared.queue.push(claim);
    let mut enqueued = add_tasks(&shared, 3, 1);
    shared.queue.take_all(&mut writer.backlog, Wait::No);
    writer.serve_group();
    assert!(enqueued.try_recv().unwrap().is_ok());
    assert_eq!(claimed.try_recv().unwrap().unwrap(), 3);
}

#[test]
fn a_claim_opens_a_transaction_only_if_something_is_ready() {
    let mut writer = writer();
    let shared = Arc::clone(&writer.shared);
    let mut serve = |tasks: usize| {
        let (claim, mut in_transaction) =
            Call::pair(Class::Claim, Sync::RelaxedIfReady, |tx| Ok(!tx.conn.is_autocommit()));
        shared.queue.push(claim);
        let _enqueued = (tasks > 0).then(|| add_tasks(&shared, tasks, 1));
        shared.queue.take_all(&mut writer.backlog, Wait::No);
        writer.serve_group();
        in_transaction.try_recv().unwrap().unwrap()
    };
    assert!(!serve(0), "an empty store");
    assert!(serve(1), "the enqueue of the same group");
    assert!(serve(0), "what it left");
}
