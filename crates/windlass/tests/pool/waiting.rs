//! Waiting for room, and learning that there is none.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use windlass::Rejected;

use crate::{Gate, pool};

const LONG: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn dispatch_wait_adds_the_task_once_there_is_room() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let _running = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    let waiting = tokio::spawn({
        let (pool, task) = (pool.clone(), gate.task(2));
        async move { pool.dispatch_wait(task, LONG).await.unwrap().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pool.gauges().accepted, 2);
    let before = Instant::now();
    gate.let_go(3);
    assert_eq!(waiting.await.unwrap(), Ok(2));
    assert_eq!(before.elapsed(), Duration::ZERO, "it was notified, not woken by a timer");
}

#[tokio::test(start_paused = true)]
async fn dispatch_wait_gives_the_task_back_at_its_deadline() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let _running = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    let before = Instant::now();
    let refused = pool.dispatch_wait(gate.task(2), Duration::from_secs(3)).await;
    let Err(Rejected::Full(task)) = refused else { panic!("nothing had ended") };
    assert_eq!(before.elapsed().as_secs(), 3);
    assert_eq!(pool.gauges().rejected, 1);
    gate.let_go(3);
    assert_eq!(pool.dispatch_wait(task, LONG).await.unwrap().await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn waiting_callers_get_room_although_others_give_up() {
    let (pool, gate) = (pool(2, 2), Gate::new());
    let _running: Vec<_> = (0..4).map(|number| pool.dispatch(gate.task(number)).unwrap()).collect();
    let callers: Vec<_> = (4..24)
        .map(|number| {
            let (pool, task) = (pool.clone(), gate.task(number));
            tokio::spawn(async move { pool.dispatch_wait(task, LONG).await.unwrap().await.unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Every other caller gives up while it waits.
    for caller in callers.iter().step_by(2) {
        caller.abort();
    }
    let before = Instant::now();
    gate.let_go(24);
    let mut served = 0;
    for caller in callers {
        served += usize::from(caller.await.is_ok());
    }
    assert_eq!(served, 10);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stop_sends_waiting_callers_away_at_once() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let _running = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    let waiting = tokio::spawn({
        let (pool, task) = (pool.clone(), gate.task(2));
        async move { pool.dispatch_wait(task, LONG).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = Instant::now();
    let stopping = tokio::spawn({
        let pool = pool.clone();
        async move { pool.stop(LONG).await }
    });
    assert!(waiting.await.unwrap().is_err_and(|refused| refused.is_closed()));
    assert_eq!(before.elapsed(), Duration::ZERO);
    gate.let_go(2);
    assert_eq!(stopping.await.unwrap().drained, 2);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_and_logged_once_a_second() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let _running = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    let lines = Lines::default();
    let _logging = tracing::subscriber::set_default(lines.clone());

    for _ in 0..5 {
        assert!(pool.dispatch(async {}).is_err());
    }
    assert_eq!(lines.take().len(), 1, "one line for the first, none for the next");

    tokio::time::advance(Duration::from_millis(999)).await;
    assert!(pool.dispatch(async {}).is_err());
    assert!(lines.take().is_empty());

    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(pool.dispatch(async {}).is_err());
    let due = lines.take();
    assert_eq!(due.len(), 1);
    // Four after the first line, one before the second was over, and the one that caused this line.
    assert!(due[0].contains("refused=6"), "{}", due[0]);
    assert!(due[0].contains("WORKER_BUFFER_SIZE") && due[0].contains("WORKER_POOL_SIZE"), "{}", due[0]);
    assert_eq!(pool.gauges().rejected, 7);
}

/// Keeps the warnings.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN && metadata.target().starts_with("windlass")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}
