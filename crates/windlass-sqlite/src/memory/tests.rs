//! A rollback undoes everything.

use windlass_core::crash::Group;

use super::*;

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn held(crashes: u32) -> Held {
    Held {
        lease: 1,
        attempt: 1,
        max_attempts: 10,
        crashes,
        group: Group::default(),
        claim_no: 1,
        claimed_at: Timestamp::from_ms(1),
        lane: LaneId(1),
        payload_bytes: 10,
        keyed: false,
        cancel: None,
        gate: None,
    }
}

#[test]
fn a_rollback_takes_every_change_back() {
    let (worker, gone) = (WorkerId(1), WorkerId(2));
    let lease = |id| LeaseRef { id: TaskId::from_raw(id), lease: 1 };
    let mut memory = Memory::new();
    memory.add_lane(&name("q"), &name("a"), LaneId(1));
    memory.add_worker(worker, Service::default());
    memory.add_worker(gone, Service::default());
    memory.hold(worker, TaskId::from_raw(1), held(2));
    memory.note_receipt(worker, 1, 5);
    memory.count(LaneId(1), State::Ready, 3);
    memory.commit();
    let before = format!("{memory:?}");

    memory.add_lane(&name("q"), &name("b"), LaneId(2));
    memory.count(LaneId(2), State::Scheduled, 4);
    memory.count_move(LaneId(1), State::Ready, State::Running, 2);
    memory.count_suspects(LaneId(1), 1);
    memory.count_aside(LaneId(1), 1);
    memory.set_paused(&name("q"), true);
    assert!(memory.take(worker, lease(1)).is_some());
    memory.hold(worker, TaskId::from_raw(2), held(0));
    memory.ask_cancel(worker, TaskId::from_raw(2), "stop");
    memory.note_receipt(worker, 1, 6);
    memory.note_receipt(worker, 2, 1);
    memory.end_worker(gone);
    memory.add_worker(WorkerId(3), Service::default());
    memory.count_history(1, 100);
    assert_ne!(format!("{memory:?}"), before);

    memory.roll_back();
    memory.by_name.values_mut().for_each(HashMap::shrink_to_fit);
    let after = format!("{memory:?}");
    assert_eq!(after.len(), before.len(), "{before}\n{after}");
    assert_eq!(memory.lanes.len(), 1);
    assert_eq!((memory.lanes[0].depth.ready, memory.lanes[0].depth.running), (3, 0));
    assert_eq!((memory.scheduled, memory.lanes[0].suspects, memory.lanes[0].paused), (0, 0, false));
    let worker = memory.worker(worker).unwrap();
    assert_eq!((worker.suspects, worker.held.len(), worker.receipts.get(&1)), (1, 1, Some(&5)));
    assert!(memory.worker(gone).is_some() && memory.worker(WorkerId(3)).is_none());
}

#[test]
fn a_lease_is_taken_only_by_its_number_and_its_worker() {
    let mut memory = Memory::new();
    memory.add_worker(WorkerId(1), Service::default());
    let id = TaskId::from_raw(7);
    memory.hold(WorkerId(1), id, held(0));
    assert!(memory.take(WorkerId(2), LeaseRef { id, lease: 1 }).is_none());
    assert!(memory.take(WorkerId(1), LeaseRef { id, lease: 2 }).is_none());
    assert!(memory.take(WorkerId(1), LeaseRef { id, lease: 1 }).is_some());
    assert!(memory.take(WorkerId(1), LeaseRef { id, lease: 1 }).is_none());
}
