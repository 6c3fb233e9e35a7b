//! Visits every interleaving of a few small scenarios. With one choice of the protocol taken back, finds the
//! interleaving that breaks a promise.

use stateright::{Checker, HasDiscoveries, Model};
use windlass_protocol::{
    model::Checked,
    protocol::{Operation, Protocol, Scenario, Spec},
    story::story,
};

fn job(job: usize) -> Spec {
    Spec { job: Some(job), ..Spec::default() }
}

fn step() -> Spec {
    Spec { is_step: true, ..Spec::default() }
}

fn step_of(job: usize) -> Spec {
    Spec { job: Some(job), ..step() }
}

fn runs(worker: usize, spec: Spec) -> Spec {
    Spec { runs_on: Some(worker), ..spec }
}

fn late(spec: Spec) -> Spec {
    Spec { is_late: true, ..spec }
}

/// Two tasks of a job with a limit of one; one of them is committed late.
fn one_job() -> Scenario {
    Scenario { tasks: vec![late(job(0)), job(0)], limits: [Some(1), None], ..Scenario::default() }
}

/// Two steps; the one with the lower id is committed late.
fn one_workflow() -> Scenario {
    Scenario { tasks: vec![late(step()), step()], ..Scenario::default() }
}

/// Two steps of a job with a limit of one, and a task of the same job.
fn steps_with_a_job() -> Scenario {
    let tasks = vec![late(step_of(0)), step_of(0), job(0)];
    Scenario { tasks, limits: [Some(1), None], ..Scenario::default() }
}

/// The limit of a job falls from two to one.
fn limit_falls() -> Scenario {
    Scenario {
        tasks: vec![job(0), job(0)],
        limits: [Some(2), None],
        operation: Some(Operation::SetLimit(0, 1)),
        ..Scenario::default()
    }
}

/// Two jobs, one of them with a limit that falls, and a workflow whose steps belong to that one.
fn everything() -> Scenario {
    Scenario {
        tasks: vec![late(job(0)), late(step_of(1)), job(0), step_of(1)],
        limits: [Some(1), Some(2)],
        operation: Some(Operation::SetLimit(1, 1)),
        is_coarse: true,
        ..Scenario::default()
    }
}

/// Two admissions of two jobs that do not exist, while the operator makes one of them. No task starts: only
/// the locks are checked.
fn jobs_are_made() -> Scenario {
    Scenario {
        tasks: vec![late(job(0)), late(job(1)), job(0), job(1)],
        default_limit: 0,
        operation: Some(Operation::SetLimit(1, 0)),
        ..Scenario::default()
    }
}

/// Two held tasks, the later one with the higher priority, and an operator who cancels both.
fn tasks_are_cancelled() -> Scenario {
    Scenario {
        tasks: vec![job(0), Spec { priority: 1, ..job(0) }],
        limits: [Some(2), None],
        operation: Some(Operation::Cancel(0b11)),
        yields_at_rows: true,
        ..Scenario::default()
    }
}

/// A held task in a lane that no worker serves until one registers.
fn lane_comes() -> Scenario {
    Scenario {
        tasks: vec![job(0)],
        limits: [Some(1), None],
        serves: [0, 1],
        comes_later: [false, true],
        ..Scenario::default()
    }
}

/// A job with tasks in two lanes, each served by one worker; the first worker goes.
fn lane_goes() -> Scenario {
    Scenario {
        tasks: vec![job(0), Spec { lane: 1, ..job(0) }],
        limits: [Some(1), None],
        serves: [0b01, 0b10],
        expires: true,
        ..Scenario::default()
    }
}

/// The job is counted because of the last task's append.
fn two_run_and_one_waits() -> Vec<Spec> {
    vec![runs(0, job(0)), runs(1, job(0)), job(0)]
}

/// Two tasks run at the limit of their job and one waits. Another task comes late, so that a transaction
/// counts while places are passed on.
fn places_are_passed_on() -> Scenario {
    Scenario {
        tasks: vec![runs(0, job(0)), runs(1, job(0)), job(0), late(job(0))],
        limits: [Some(2), None],
        ..Scenario::default()
    }
}

/// The same, while the limit falls.
fn places_are_passed_on_while_the_limit_falls() -> Scenario {
    Scenario {
        tasks: vec![runs(0, job(0)), runs(1, job(0)), job(0), job(0)],
        operation: Some(Operation::SetLimit(0, 1)),
        ..places_are_passed_on()
    }
}

/// A job is removed while two of its tasks end; two more come, for a new job of the same name with a lower
/// limit.
fn a_job_comes_back() -> Scenario {
    Scenario {
        tasks: vec![runs(0, job(0)), runs(1, job(0)), late(job(0)), late(job(0))],
        limits: [Some(2), None],
        default_limit: 1,
        operation: Some(Operation::Remove(0)),
        ..Scenario::default()
    }
}

fn holds_with(protocol: Protocol, scenario: Scenario) {
    let model = Checked { protocol, scenario };
    let checker =
        model.clone().checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{} states, all visited", checker.unique_state_count());
    for (promise, path) in checker.discoveries() {
        if promise != "COMES-TO-REST" {
            println!("{promise} is broken:\n{}", story(&model, path));
        }
    }
    checker.assert_properties();
}

fn holds(scenario: Scenario) {
    holds_with(Protocol::default(), scenario);
}

fn breaks(promise: &'static str, protocol: Protocol, scenario: Scenario) {
    let model = Checked { protocol, scenario };
    let wanted = HasDiscoveries::AnyOf([promise].into());
    // One thread finds the same path each time.
    let checker = model.clone().checker().threads(1).finish_when(wanted).spawn_bfs().join();
    let path = checker.discovery(promise).map(|path| story(&model, path));
    println!(
        "{} states; {promise} is broken by\n{}",
        checker.unique_state_count(),
        path.clone().unwrap_or_default()
    );
    assert!(path.is_some(), "{promise} holds");
}

#[test]
fn a_job_keeps_its_promises_while_workers_fail() {
    holds(Scenario { expires: true, crashes: true, losses: 1, ..one_job() });
}

#[test]
fn a_workflow_keeps_its_promises_while_workers_fail() {
    holds(Scenario { failures: 1, expires: true, crashes: true, losses: 1, ..one_workflow() });
}

#[test]
fn steps_of_a_job_keep_their_promises_while_a_worker_is_lost() {
    holds(Scenario { failures: 1, expires: true, ..steps_with_a_job() });
}

#[test]
fn a_lower_limit_is_kept_with_other_steps_between_locks() {
    holds(Scenario { yields_at_rows: true, ..limit_falls() });
}

#[test]
fn a_lower_limit_is_kept_while_a_worker_is_lost() {
    holds(Scenario { expires: true, crashes: true, ..limit_falls() });
}

#[test]
fn a_lower_limit_is_kept_while_answers_are_lost() {
    holds(Scenario { losses: 1, ..limit_falls() });
}

#[test]
fn two_jobs_and_a_workflow_keep_their_promises() {
    holds(everything());
}

#[test]
fn two_jobs_and_a_workflow_hold_while_a_worker_is_lost() {
    let tasks = vec![late(job(0)), late(step_of(1)), step_of(1)];
    holds(Scenario { tasks, expires: true, ..everything() });
}

#[test]
fn a_late_claim_without_the_workers_lock_leaks_a_lease() {
    let protocol = Protocol { locks_worker: false, ..Protocol::default() };
    breaks("SLOT-BALANCED", protocol, Scenario { expires: true, ..one_job() });
}

#[test]
fn a_count_in_the_locking_statement_exceeds_the_limit() {
    let protocol = Protocol { counts_after_lock: false, ..Protocol::default() };
    breaks("LIMIT", protocol, one_job());
}

#[test]
fn steps_in_the_order_of_their_ids_overtake_one_that_runs() {
    let protocol = Protocol { places_steps: false, ..Protocol::default() };
    breaks("WF-ORDER", protocol, one_workflow());
}

#[test]
fn without_the_guard_of_the_update_a_task_is_run_twice() {
    let protocol = Protocol { guards_updates: false, ..Protocol::default() };
    breaks("ONE-LEASE", protocol, limit_falls());
}

#[test]
fn a_demotion_that_skips_locked_rows_exceeds_the_limit() {
    let protocol = Protocol { demotion_waits: false, ..Protocol::default() };
    breaks("LIMIT", protocol, limit_falls());
}

#[test]
fn places_are_passed_on_while_another_transaction_counts() {
    holds(places_are_passed_on());
}

#[test]
fn places_are_passed_on_once_while_answers_are_lost() {
    holds(Scenario { tasks: two_run_and_one_waits(), losses: 1, ..places_are_passed_on() });
}

#[test]
fn places_are_passed_on_while_a_worker_is_lost() {
    let tasks = two_run_and_one_waits();
    holds(Scenario { tasks, expires: true, is_coarse: true, ..places_are_passed_on() });
}

#[test]
fn places_are_passed_on_while_limits_fall_and_answers_are_lost() {
    let (tasks, scenario) = (two_run_and_one_waits(), places_are_passed_on_while_the_limit_falls());
    holds(Scenario { tasks, losses: 1, is_coarse: true, ..scenario });
}

#[test]
fn places_are_passed_on_while_a_limit_falls() {
    holds(places_are_passed_on_while_the_limit_falls());
}

#[test]
fn places_are_passed_on_while_a_limit_rises() {
    let operation = Some(Operation::SetLimit(0, 2));
    let tasks = vec![runs(0, job(0)), job(0), job(0)];
    holds(Scenario { tasks, limits: [Some(1), None], operation, ..places_are_passed_on() });
}

#[test]
fn places_are_passed_on_while_a_lane_goes() {
    let tasks = vec![runs(1, job(0)), job(0), Spec { lane: 1, ..job(0) }];
    holds(Scenario { tasks, ..lane_goes() });
}

#[test]
fn a_job_that_comes_back_keeps_its_new_limit() {
    holds(a_job_comes_back());
}

#[test]
fn jobs_are_made_without_a_deadlock() {
    holds(jobs_are_made());
}

#[test]
fn tasks_are_cancelled_without_a_deadlock() {
    holds(tasks_are_cancelled());
}

#[test]
fn a_task_of_a_lane_with_a_new_worker_is_not_left_behind() {
    holds(lane_comes());
    holds_with(Protocol { leader_looks: false, ..Protocol::default() }, lane_comes());
}

#[test]
fn a_lane_without_workers_gives_the_room_of_its_job_back() {
    holds(lane_goes());
}

#[test]
fn a_count_without_freed_places_gives_them_away_twice() {
    let protocol = Protocol { counts_freed: false, ..Protocol::default() };
    breaks("LIMIT", protocol, places_are_passed_on());
    breaks("PLACES", protocol, places_are_passed_on());
}

#[test]
fn passing_on_a_place_of_a_marked_job_exceeds_the_limit() {
    let protocol = Protocol { counts_if_marked: false, ..Protocol::default() };
    breaks("LIMIT", protocol, places_are_passed_on_while_the_limit_falls());
}

#[test]
fn a_mark_without_freed_places_lets_them_exceed_the_limit() {
    let protocol = Protocol { marks_for_freed: false, ..Protocol::default() };
    breaks("LIMIT", protocol, places_are_passed_on_while_the_limit_falls());
    breaks("PLACES", protocol, places_are_passed_on_while_the_limit_falls());
}

#[test]
fn a_new_job_without_a_count_gets_the_places_of_the_old_job() {
    let protocol = Protocol { marks_new_jobs: false, ..Protocol::default() };
    breaks("LIMIT", protocol, a_job_comes_back());
}

#[test]
fn jobs_made_after_others_are_locked_can_deadlock() {
    let protocol = Protocol { makes_jobs_apart: false, ..Protocol::default() };
    breaks("NO-DEADLOCK", protocol, jobs_are_made());
}

#[test]
fn promotion_by_priority_and_cancellation_by_id_can_deadlock() {
    let protocol = Protocol { promotes_by_id: false, ..Protocol::default() };
    breaks("NO-DEADLOCK", protocol, tasks_are_cancelled());
}

#[test]
fn a_parked_task_is_stranded_without_another_look_at_its_lane() {
    let protocol = Protocol { unparks_after_commit: false, leader_looks: false, ..Protocol::default() };
    breaks("NO-STRANDED", protocol, lane_comes());
}

#[test]
fn a_promoted_task_of_a_dead_lane_keeps_its_room_without_a_look() {
    let protocol = Protocol { leader_looks: false, ..Protocol::default() };
    breaks("NO-STRANDED", protocol, lane_goes());
}
