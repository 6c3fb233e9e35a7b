//! Lost answers: the store made the change or not, and the caller cannot tell.

use std::sync::Arc;

use windlass_core::{Error, Outcome, State, Store};

use super::rig::{MANY, Rig, keyed};
use crate::{
    harness::Harness,
    staged::{Act, On, Staged},
};

/// A call whose fate its caller cannot tell, and whether it takes effect.
const LOST: [(Act, bool); 2] = [(Act::LoseAnswer, true), (Act::LoseCall, false)];

/// A rig whose store loses calls and answers as staged.
async fn staged(harness: &dyn Harness) -> (Rig<'_>, Arc<Staged>) {
    let store = Arc::new(Staged::new(Rig::open(harness).await.store));
    let shared: Arc<dyn Store> = Arc::<Staged>::clone(&store);
    (Rig { harness, store: shared }, store)
}

pub async fn a_keyed_enqueue_in_doubt_is_repeated_without_a_second_task(harness: &dyn Harness) {
    for (act, takes_effect) in LOST {
        let (rig, store) = staged(harness).await;
        store.next(On::Enqueue, [act]);
        let batch = vec![keyed("one"), keyed("two")];
        let first = rig.store.enqueue(batch.clone()).await;
        assert!(matches!(first, Err(Error::Unknown(_))), "{first:?}");
        let again = rig.store.enqueue(batch).await.unwrap();
        assert!(again.iter().all(|answer| answer.existing == takes_effect));
        assert_eq!(rig.all().await.len(), 2);
        assert_eq!(store.left(On::Enqueue), 0);
    }
}

pub async fn a_claim_in_doubt_is_undone_and_its_tasks_run(harness: &dyn Harness) {
    for (act, takes_effect) in LOST {
        let (rig, store) = staged(harness).await;
        let ids = rig.add_many("a", 3).await;
        let mut worker = rig.worker().await;
        worker.store = Arc::<Staged>::clone(&store);
        store.next(On::Claim, [act]);
        assert!(matches!(worker.try_claim(2).await, Err(Error::Unknown(_))));
        let back = rig.store.unclaim(worker.id, worker.claim_no).await.unwrap();
        assert_eq!(back, if takes_effect { 2 } else { 0 });
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
    for (act, _) in LOST {
        let (rig, store) = staged(harness).await;
        rig.add_many("a", 2).await;
        let mut worker = rig.worker().await;
        worker.store = Arc::<Staged>::clone(&store);
        let tasks = worker.claim(MANY).await;
        let ends = vec![(tasks[0].clone(), Outcome::Done(None)), (tasks[1].clone(), Outcome::Release)];
        let batch = Arc::new(worker.batch(ends).await);
        store.next(On::Settle, [act, Act::LoseAnswer]);
        for _ in 0..2 {
            let lost = worker.store.settle(Arc::clone(&batch)).await;
            assert!(matches!(lost, Err(Error::Unknown(_))), "{lost:?}");
        }
        let settled = worker.store.settle(batch).await.unwrap();
        assert!(settled.replayed && settled.fenced.is_empty(), "{settled:?}");
        assert_eq!(rig.state(tasks[0].id).await, State::Done);
        let released = rig.task(tasks[1].id).await;
        assert_eq!((released.state, released.attempt, released.attempts.len()), (State::Ready, 0, 1));
        assert_eq!(store.left(On::Settle), 0);
    }
}
