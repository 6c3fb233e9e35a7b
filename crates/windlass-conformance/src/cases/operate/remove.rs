//! Removal of dead tasks by an operator, and the look-up of a key's task.

use std::time::Duration;

use windlass_core::{Error, NewTask, OnFailure, Outcome, Result, State, TaskId, WorkflowAction};

use crate::{
    cases::rig::{Hand, MANY, Rig, keyed, name, step_of, task},
    harness::Harness,
};

async fn die(worker: &mut Hand<'_>) -> TaskId {
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::dead("broken")).await;
    claimed.id
}

async fn remove(rig: &Rig<'_>, id: TaskId) -> Result<State> {
    rig.store.remove(&[id]).await.unwrap().remove(0).result
}

pub async fn a_dead_task_can_be_removed_for_good(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    for id in &ids {
        assert_eq!(die(&mut worker).await, *id);
    }
    let nobody = TaskId::from_raw(ids[0].raw() - 1);
    let changed = rig.store.remove(&[ids[0], nobody, ids[1], ids[0]]).await.unwrap();
    let results: Vec<_> = changed.iter().map(|changed| changed.result.is_ok()).collect();
    assert_eq!(results, [true, false, true, false], "{changed:?}");
    assert_eq!(changed[0].result, Ok(State::Dead));
    assert!(matches!(changed[1].result, Err(Error::NotFound(_))), "{changed:?}");
    assert_eq!(rig.store.task(ids[0]).await, Ok(None));
    assert_eq!(rig.all().await.iter().map(|task| task.id).collect::<Vec<_>>(), [ids[2]]);
    assert_eq!(rig.store.lane_records().await.unwrap()[0].depth.dead, 1);
    rig.assert_sound().await;
}

pub async fn only_a_dead_task_can_be_removed(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 4).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim(2).await;
    worker.finish(&claimed[0]).await;
    rig.cancel(ids[2]).await.unwrap();
    for (id, state) in ids.iter().zip([State::Done, State::Running, State::Cancelled, State::Ready]) {
        let refused = remove(&rig, *id).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{state}: {refused:?}");
        assert_eq!(rig.state(*id).await, state);
    }
}

pub async fn the_step_that_blocks_a_workflow_cannot_be_removed(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    let culprit = die(&mut worker).await;
    let refused = remove(&rig, culprit).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    assert_eq!(rig.state(culprit).await, State::Dead);
    rig.assert_sound().await;
    rig.store.gates().change_workflow(&name("w"), WorkflowAction::Skip).await.unwrap();
    assert_eq!(remove(&rig, culprit).await, Ok(State::Dead), "a skipped step blocks nothing");
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
    let skips = NewTask { on_failure: Some(OnFailure::Skip), ..step_of("v") };
    rig.add(skips).await;
    let passed = die(&mut worker).await;
    assert_eq!(remove(&rig, passed).await, Ok(State::Dead));
    rig.assert_sound().await;
}

pub async fn the_key_of_a_removed_task_is_remembered(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(keyed("k")).await;
    let mut worker = rig.worker().await;
    die(&mut worker).await;
    assert_eq!(remove(&rig, id).await, Ok(State::Dead));
    let again = rig.store.enqueue(vec![keyed("k")]).await.unwrap();
    assert_eq!((again[0].id, again[0].existing), (id, true));
    rig.advance(Duration::from_hours(24 * 8)).await;
    let anew = rig.store.enqueue(vec![keyed("k")]).await.unwrap();
    assert!(!anew[0].existing && anew[0].id != id, "{anew:?}");
}

pub async fn a_key_leads_to_its_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let find = async |queue: &str, key: &str| rig.store.key_holder(&name(queue), key).await.unwrap();
    assert_eq!(find("default", "k").await, None);
    let id = rig.add(keyed("k")).await;
    assert_eq!(find("default", "k").await, Some(id));
    assert_eq!((find("default", "l").await, find("other", "k").await), (None, None));
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(find("default", "k").await, Some(id), "also when it has ended");
    rig.add(task("a")).await;
}
