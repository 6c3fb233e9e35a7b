//! Counting, and a rollback that undoes everything.

use super::*;

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn ready(id: i64) -> Ready {
    let task = Waiting { id: TaskId::from_raw(id), priority: 0, crashes: 0 };
    Ready { lane: LaneId(2), task, seq: id }
}

#[test]
fn a_room_counts_by_lane_and_is_forgotten_when_it_is_empty() {
    let (mut rooms, job) = (Rooms::default(), name("j"));
    rooms.enter(&job, LaneId(1), 0);
    rooms.enter_ready(&job, ready(3));
    let room = rooms.get(&job).unwrap();
    assert_eq!((room.ready(), room.held(), room.shares.len(), room.is_mixed()), (1, 1, 2, false));
    rooms.enter(&job, LaneId(1), 5);
    assert!(rooms.get(&job).unwrap().is_mixed());
    rooms.leave_line(&job, LaneId(1), TaskId::from_raw(1));
    rooms.leave_line(&job, LaneId(1), TaskId::from_raw(2));
    rooms.leave(&job, LaneId(2), TaskId::from_raw(3));
    assert!(rooms.is_empty());
}

#[test]
fn a_start_is_noticed_once() {
    let (mut rooms, job) = (Rooms::default(), name("j"));
    let first = rooms.add_running(&job);
    assert_eq!(rooms.get(&job).unwrap().unnoticed, 1);
    rooms.notice(&job);
    let second = rooms.add_running(&job);
    rooms.stop(&job, first);
    assert_eq!((rooms.get(&job).unwrap().running, rooms.get(&job).unwrap().unnoticed), (1, 1));
    rooms.stop(&job, second);
    assert!(rooms.is_empty());
}

#[test]
fn a_rollback_takes_every_change_back() {
    let (mut rooms, job, other) = (Rooms::default(), name("j"), name("k"));
    rooms.enter(&job, LaneId(1), 0);
    rooms.set_again(&job, None, Some(Timestamp::from_ms(5)));
    rooms.set_delayed(&job, true);
    rooms.postpone_job(job.clone());
    rooms.postpone_workflow(other.clone());
    rooms.commit();
    let before = rooms.get(&job).cloned();

    rooms.leave_line(&job, LaneId(1), TaskId::from_raw(1));
    rooms.add_running(&other);
    rooms.notice(&other);
    rooms.set_again(&job, Some(Timestamp::from_ms(5)), Some(Timestamp::from_ms(9)));
    rooms.set_delayed(&job, false);
    rooms.set_delayed(&other, true);
    rooms.job_done(&job);
    rooms.workflow_done(&other);
    assert!(!rooms.has_pending());

    rooms.roll_back();
    assert_eq!(rooms.get(&job).cloned(), before);
    assert_eq!(rooms.get(&other), None);
    assert_eq!(rooms.due(Timestamp::from_ms(9), 9), std::slice::from_ref(&job));
    assert_eq!(rooms.next_turn(), Some(Timestamp::from_ms(5)));
    assert!(rooms.is_delayed(&job) && !rooms.is_delayed(&other));
    assert!(rooms.pending_jobs().contains(&job) && rooms.pending_workflows().contains(&other));
}
