//! A store that cannot be reached for a while: every part of a worker retries with its own pauses, and the
//! first answered call ends the pauses of all. Time is the runtime's and stands still while any task is
//! ready.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use windlass::{Error, TaskState, WorkerConfig, inside::Home};

use crate::{
    rig::{enqueue, gated, memory, start, until, until_state},
    staged::{Act, On, Staged},
};

/// The calls that fail while the store is away.
const CALLS: [On; 6] = [On::Claim, On::Unclaim, On::Renew, On::Settle, On::Register, On::DueSchedules];

fn go_away(store: &Staged) {
    for on in CALLS {
        store.always(on, Some(Act::Fail(Error::Unavailable("down".into()))));
    }
}

fn come_back(store: &Staged) {
    for on in CALLS {
        store.always(on, None);
    }
}

fn simulated(seed: u64) -> WorkerConfig {
    WorkerConfig { home: Home::ThisRuntime(seed), ..WorkerConfig::default() }
}

/// When each sort of call was first made from now on.
async fn first_calls<const N: usize>(store: &Staged, sorts: [On; N]) -> [Duration; N] {
    let (began, before) = (Instant::now(), sorts.map(|on| store.calls(on)));
    let mut at = [None; N];
    until("every part has called", async || {
        for ((at, on), before) in at.iter_mut().zip(sorts).zip(before) {
            if store.calls(on) > before {
                at.get_or_insert_with(|| began.elapsed());
            }
        }
        at.iter().all(Option::is_some)
    })
    .await;
    at.map(Option::unwrap_or_default)
}

#[tokio::test(start_paused = true)]
async fn the_first_part_that_reaches_the_store_wakes_the_others() {
    for seed in 0..8 {
        // Without hints: only an answer shows that the store is back.
        let store = Arc::new(Staged::without_hints(memory()));
        let (gate, ids) = (Arc::new(Semaphore::new(0)), enqueue(&*store, 2).await);
        let handler = gated(&gate);
        let worker = start(store.clone(), handler, simulated(seed));
        until("they run", async || worker.status().running == 2).await;
        go_away(&store);
        // Its end waits for the store. The other task is handed back when the lease is over, and that waits
        // too.
        gate.add_permits(1);
        tokio::time::sleep(Duration::from_secs(60 + seed)).await;
        come_back(&store);
        let at = first_calls(&store, [On::Register, On::Settle, On::Claim]).await;
        let first = at.into_iter().min().unwrap();
        for (part, at) in ["register", "settle", "claim"].into_iter().zip(at) {
            let later = at.saturating_sub(first);
            assert!(later <= Duration::from_millis(250), "seed {seed}: {part} came {later:?} later");
        }
        assert!(first <= Duration::from_millis(1_300), "seed {seed}: back after {first:?}");
        gate.add_permits(10);
        until_state(&*store, &ids, TaskState::Done).await;
        worker.stop().await;
    }
}

/// Keeps the warnings and errors of this thread.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "message" | "away_ms") {
            let text = format!("{} {value:?}", self.0);
            text.trim().clone_into(&mut self.0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_once_at_its_start_and_once_at_its_end() {
    let kept = Kept::default();
    let _here = tracing::subscriber::set_default(kept.clone());
    let store = Arc::new(Staged::without_hints(memory()));
    let gate = Arc::new(Semaphore::new(0));
    enqueue(&*store, 1).await;
    // A lease that outlives the outage: an expired one would log another line.
    let config = WorkerConfig { lease_ttl: Duration::from_mins(5), ..simulated(1) };
    let worker = start(store.clone(), gated(&gate), config);
    until("it runs", async || worker.status().running == 1).await;
    go_away(&store);
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_mins(1)).await;
    come_back(&store);
    until("all is settled", async || worker.status().settled == 1).await;
    worker.stop().await;
    let lines = kept.0.lock().unwrap().clone();
    let [gone, back] = &lines[..] else { panic!("{lines:?}") };
    assert!(gone.contains("the store cannot be reached"), "{gone}");
    assert!(back.contains("the store answers again"), "{back}");
    let away_ms: u64 = back.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!((58_000..64_000).contains(&away_ms), "{back}");
}
