//! The audit finds nothing in a store in use.

use std::time::Duration;

use windlass_core::Outcome;

use crate::{
    cases::rig::{MANY, Rig, SWEPT_AFTER},
    harness::Harness,
};

pub async fn a_store_in_use_has_no_finding(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.assert_sound().await;
    rig.add_many("a", 8).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let tasks = first.claim(5).await;
    second.claim(1).await;
    rig.assert_sound().await;
    first.end(&tasks[0], Outcome::Done(None)).await;
    first.end(&tasks[1], Outcome::retry("x")).await;
    first.end(&tasks[2], Outcome::dead("x")).await;
    rig.store.unclaim(second.id, 1).await.unwrap();
    rig.assert_sound().await;
    rig.advance(SWEPT_AFTER + Duration::from_mins(1)).await;
    rig.sweep().await;
    rig.promote().await;
    rig.assert_sound().await;
    assert!(!rig.worker().await.claim(MANY).await.is_empty());
    rig.assert_sound().await;
}
