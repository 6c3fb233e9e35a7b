//! The inbox of a worker: numbers and answers.

use std::{sync::Arc, time::Duration};

use windlass_core::{Lane, Name, Payload};

use super::*;

const WORKER: WorkerId = WorkerId(7);
/// The first stream is numbered above this.
const FIRST: u64 = UNSEEN_MAX;

fn open() -> Push {
    let push = Push::default();
    let introduction = NewWorker {
        host: String::new(),
        pid: 1,
        version: String::new(),
        kinds: vec![Name::new("kind", "a").unwrap()],
        queues: Vec::new(),
        slots: 10,
        lease_ttl: Duration::from_secs(10),
    };
    push.registered(WORKER, introduction);
    let now = Timestamp::from_ms(5);
    push.called(Some(&ClaimAnswer { tasks: Vec::new(), rest: Rest::Nothing, next_due: None, now }));
    push.hello().unwrap();
    push.opened(Timestamp::from_ms(5), 0);
    push
}

fn task(id: i64, claim_no: u64) -> Claimed {
    let name = Name::new("name", "a").unwrap();
    Claimed {
        id: TaskId::from_raw(id),
        lease: 1,
        attempt: 1,
        max_attempts: 1,
        crashes: 0,
        worker: WORKER,
        claim_no,
        lane: Arc::new(Lane { id: LaneId(1), queue: name.clone(), kind: name }),
        priority: 0,
        payload: Payload::bytes(Vec::new()),
        job: None,
        workflow: None,
        timeout: None,
        retry: None,
        trace: None,
        claimed_at: Timestamp::from_ms(5),
    }
}

fn claim(push: &Push, claim_no: u64, n: u32) -> Option<usize> {
    match push.claim(&Demand::new(WORKER, claim_no, Arc::new([LaneId(1)]), n)) {
        Claim::Answered(answer) => Some(answer.tasks.len()),
        Claim::Call(_) => None,
    }
}

#[test]
fn credit_counts_received_tasks_and_free_slots() {
    let push = open();
    assert_eq!((claim(&push, 1, 4), push.credit()), (Some(0), 4));
    push.received(vec![task(1, 1), task(2, 1), task(3, 1)]);
    assert_eq!((claim(&push, 2, 2), push.credit()), (Some(2), 3), "one waits in the inbox, none may follow");
    assert_eq!((claim(&push, 3, 5), push.credit()), (Some(1), 7));
}

#[test]
fn a_task_of_an_unknown_lane_waits_and_gives_a_lane_hint() {
    let push = open();
    let mut hints = push.listen();
    claim(&push, 1, 4);
    let lane = Arc::new(Lane { id: LaneId(2), ..(*task(1, 1).lane).clone() });
    push.received(vec![Claimed { lane, ..task(1, 1) }]);
    assert_eq!(hints.try_recv(), Ok(Hint::Lanes));
    assert_eq!(hints.try_recv(), Ok(Hint::Ready));
    assert_eq!(claim(&push, 2, 4), Some(0));
    let demand = Demand::new(WORKER, 3, Arc::new([LaneId(1), LaneId(2)]), 4);
    assert!(matches!(push.claim(&demand), Claim::Answered(answer) if answer.tasks.len() == 1));
}

#[test]
fn a_task_that_claims_pass_over_gives_a_lane_hint_again() {
    let push = open();
    let other = |id, claim_no| {
        let lane = Arc::new(Lane { id: LaneId(2), ..(*task(1, 1).lane).clone() });
        Claimed { lane, ..task(id, claim_no) }
    };
    push.received(vec![other(1, 1)]);
    let demand = |claim_no| Demand::new(WORKER, claim_no, Arc::new([LaneId(1), LaneId(2)]), 4);
    push.claim(&demand(2));
    // The lane is known here, and the coordinator has forgotten it.
    let mut hints = push.listen();
    push.received(vec![other(2, 3)]);
    assert_eq!(hints.try_recv(), Ok(Hint::Ready));
    for claim_no in 3..3 + u64::from(PASSED_OVER_MIN) {
        assert!(hints.try_recv().is_err(), "claim {claim_no}");
        assert_eq!(claim(&push, claim_no, 4), Some(0));
    }
    assert_eq!(hints.try_recv(), Ok(Hint::Lanes));
    assert!(matches!(push.claim(&demand(100)), Claim::Answered(answer) if answer.tasks.len() == 1));
}

#[test]
fn a_pushed_task_is_held_until_it_is_settled() {
    let push = open();
    claim(&push, 1, 4);
    push.received(vec![task(1, FIRST + 9), task(2, FIRST + 9)]);
    claim(&push, 2, 1);
    let (up_to, held) = push.holds(&[]);
    assert_eq!((up_to, held.len()), (FIRST + 9, 2), "in the inbox or with the coordinator");
    let lease = LeaseRef { id: TaskId::from_raw(1), lease: 1 };
    let item = windlass_core::SettleItem {
        lease,
        settlement: windlass_core::Settlement::Release,
        gate: windlass_core::Gate::default(),
    };
    push.settled(&SettleBatch { worker: WORKER, settler_no: 0, batch_no: 1, items: vec![item] });
    push.closed();
    let (_, hello) = push.hello().unwrap();
    assert_eq!(hello.in_flight.len(), 1);
}

#[test]
fn a_stream_is_numbered_above_all_claims_of_the_last_one() {
    let push = open();
    claim(&push, 1, 4);
    push.received(vec![task(1, FIRST + 9)]);
    push.closed();
    let (_, hello) = push.hello().unwrap();
    assert!(hello.up_to_claim_no > FIRST + 9 + 1_000_000, "{}", hello.up_to_claim_no);
    push.opened(Timestamp::from_ms(6), hello.up_to_claim_no);
    let (up_to, _) = push.holds(&[]);
    assert_eq!(
        up_to, hello.up_to_claim_no,
        "a claim that came too late is found although nothing has come since"
    );
}

#[test]
fn a_higher_number_of_the_server_counts_too() {
    let push = open();
    push.closed();
    let (_, hello) = push.hello().unwrap();
    let theirs = hello.up_to_claim_no + 7;
    push.opened(Timestamp::from_ms(6), theirs);
    assert_eq!(push.holds(&[]).0, theirs, "claims of an older stream up to there are lost");
    push.closed();
    assert_eq!(claim(&push, 2, 4), None);
    assert_eq!(
        push.number_of(2),
        Some(theirs + UNSEEN_MAX + 1),
        "above the claims that the server may still make for the ended stream, and undo"
    );
}

#[test]
fn without_a_stream_a_call_claims_under_the_highest_number() {
    let push = open();
    claim(&push, 1, 4);
    push.received(vec![task(1, FIRST + 9)]);
    push.closed();
    assert_eq!(claim(&push, 2, 4), Some(1), "tasks in the inbox are taken first");
    assert_eq!(claim(&push, 3, 4), None);
    assert_eq!((push.number_of(3), push.number_of(2)), (Some(FIRST + 9 + UNSEEN_MAX + 1), None));
    assert_eq!(push.holds(&[]).0, FIRST + 9 + UNSEEN_MAX, "tasks of the running claim are left alone");
}

#[test]
fn a_stream_does_not_open_while_a_call_claims() {
    let push = open();
    push.closed();
    assert_eq!(claim(&push, 1, 4), None);
    assert!(push.hello().is_none());
    push.called(None);
    assert!(push.hello().is_some());
    assert_eq!(claim(&push, 2, 4), Some(0), "the opening stream would hand back the tasks of a call");
}

#[test]
fn a_lost_task_neither_starts_nor_is_held() {
    let push = open();
    push.received(vec![task(1, FIRST + 1), task(2, FIRST + 1), task(3, FIRST + 1)]);
    assert_eq!(claim(&push, 1, 1), Some(1));
    let lease = |id: i64, lease: u32| LeaseRef { id: TaskId::from_raw(id), lease };
    // The worker never had the second lease in this list; the lease that it has stays.
    push.lost(&[lease(1, 1), lease(2, 9), lease(3, 1)]);
    let (_, held) = push.holds(&[]);
    assert_eq!(held, [lease(2, 1)]);
    assert_eq!(claim(&push, 2, 5), Some(1));
}
