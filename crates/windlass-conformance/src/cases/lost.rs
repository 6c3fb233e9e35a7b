//! Lost answers: the store made the change or not, and the caller cannot tell.

use std::sync::Arc;

use windlass_core::{Error, Outcome, State, Store};

use super::rig::{MANY, Rig, keyed};
use crate::{
    harness::Harness,
    lying::{Call, Fate, Lying},
};

/// A rig whose store loses answers as scripted.
async fn lying(harness: &dyn Harness) -> (Rig<'_>, Arc<Lying>) {
    let store = Arc::new(Lying::new(Rig::open(harness).await.store));
    let shared: Arc<dyn Store> = Arc::<Lying>::clone(&store);
    (Rig { harness, store: shared }, store)
}

pub async fn a_keyed_enqueue_in_doubt_is_repeated_without_a_second_task(harness: &dyn Harness) {
    for fate in [Fate::LostAnswer, Fate::LostCall] {
        let (rig, script) = lying(harness).await;
        script.script(Call::Enqueue, [fate]);
        let batch = vec![keyed("one"), keyed("two")];
        let first = rig.store.enqueue(batch.clone()).await;
        assert!(matches!(first, Err(Error::Unknown(_))), "{first:?}");
        let again = rig.store.enqueue(batch).await.unwrap();
        assert!(again.iter().all(|answer| answer.existing == (fate == Fate::LostAnswer)));
        assert_eq!(rig.all().await.len(), 2);
        assert!(script.is_played());
    }
}

pub async fn a_claim_in_doubt_is_undone_and_its_tasks_run(harness: &dyn Harness) {
    for fate in [Fate::LostAnswer, Fate::LostCall] {
        let (rig, script) = lying(harness).await;
        let ids = rig.add_many("a", 3).await;
        let mut worker = rig.worker().await;
        worker.store = Arc::<Lying>::clone(&script);
        script.script(Call::Claim, [fate]);
        assert!(matches!(worker.try_claim(2).await, Err(Error::Unknown(_))));
        let back = rig.store.unclaim(worker.id, worker.claim_no).await.unwrap();
        assert_eq!(back, if fate == Fate::LostAnswer { 2 } else { 0 });
        let tasks = worker.claim(MANY).await;
        assert_eq!(tasks.len(), 3);
        assert!(tasks.iter().all(|task| task.attempt == 1), "no attempt was spent");
        for task in &tasks {
            worker.end(task, Outcome::Done(None)).await;
        }
        for id in ids {
            assert_eq!(rig.state(id).await, State::Done);
        }
        rig.assert_sound().await;
    }
}

pub async fn a_settlement_in_doubt_is_repeated_and_applied_once(harness: &dyn Harness) {
    for fate in [Fate::LostAnswer, Fate::LostCall] {
        let (rig, script) = lying(harness).await;
        rig.add_many("a", 2).await;
        let mut worker = rig.worker().await;
        worker.store = Arc::<Lying>::clone(&script);
        let tasks = worker.claim(MANY).await;
        let ends = vec![(tasks[0].clone(), Outcome::Done(None)), (tasks[1].clone(), Outcome::Release)];
        let batch = Arc::new(worker.batch(ends).await);
        script.script(Call::Settle, [fate, Fate::LostAnswer]);
        for _ in 0..2 {
            let lost = worker.store.settle(Arc::clone(&batch)).await;
            assert!(matches!(lost, Err(Error::Unknown(_))), "{lost:?}");
        }
        let settled = worker.store.settle(batch).await.unwrap();
        assert!(settled.replayed && settled.fenced.is_empty(), "{settled:?}");
        assert_eq!(rig.state(tasks[0].id).await, State::Done);
        let released = rig.task(tasks[1].id).await;
        assert_eq!((released.state, released.attempt, released.attempts.len()), (State::Ready, 0, 1));
        assert!(script.is_played());
    }
}
