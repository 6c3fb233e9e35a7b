use std::time::Duration;

use windlass_core::{Hint, LeaseRef, NewTask, Source, Start, Store, TaskId};

use crate::rig::{Rig, START, name, task};

#[tokio::test]
async fn events_between_two_reads_become_one_hint() {
    let rig = Rig::new().await;
    let mut hints = rig.store.hints();
    rig.add(3).await;
    rig.add(3).await;
    assert_eq!(hints.next().await, Hint::Lanes);
    assert_eq!(hints.next().await, Hint::Ready);
    for minutes in [5, 2, 9] {
        rig.add_tasks(vec![NewTask { start: Start::In(Duration::from_mins(minutes)), ..task("a") }]).await;
    }
    assert_eq!(hints.next().await, Hint::Due(START.after(Duration::from_mins(2))));
}

#[tokio::test]
async fn a_cancellation_and_a_resume_give_hints_but_a_pause_does_not() {
    let rig = Rig::new().await;
    let ids = rig.add(2).await;
    let worker = rig.worker().await;
    rig.claim(worker, 1).await;
    let mut hints = rig.store.hints();
    rig.store.set_queue_paused(&name("default"), true).await.unwrap();
    rig.store.cancel(&ids, "enough").await.unwrap();
    let running = LeaseRef { id: ids[0], lease: 1 };
    assert_eq!(hints.next().await, Hint::Cancel(running, "enough".into()));
    rig.store.set_queue_paused(&name("default"), false).await.unwrap();
    assert_eq!(hints.next().await, Hint::Ready);
}

#[tokio::test]
async fn a_reader_that_never_reads_keeps_a_bounded_number_of_hints() {
    let rig = Rig::new().await;
    let ids: Vec<TaskId> = rig.add(1500).await;
    let worker = rig.worker().await;
    rig.claim(worker, 1500).await;
    let mut hints = rig.store.hints();
    rig.store.cancel(&ids, "enough").await.unwrap();
    rig.add(1).await;
    let mut cancels = 0;
    while let Hint::Cancel(..) = hints.next().await {
        cancels += 1;
    }
    assert_eq!(cancels, 1024);
    let told = rig.store.renew(worker, windlass_core::WorkerReport::default()).await.unwrap();
    assert_eq!(told.cancels.len(), 1500, "a renewal tells of all");
}
