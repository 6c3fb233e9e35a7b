//! Deliberate defects: each breaks one promise, and the case with that promise must catch it.

use crate::promise::Promise;

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident breaks $promise:ident, caught by $file:ident::$case:ident;)*) => {
        /// One way for a store to be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &[Self] = &[$(Self::$fault),*];

            /// The promise that it breaks.
            pub fn promise(self) -> Promise {
                match self {
                    $(Self::$fault => Promise::$promise,)*
                }
            }

            /// The case that must catch it: `file::name`.
            pub fn caught_by(self) -> &'static str {
                match self {
                    $(Self::$fault => concat!(stringify!($file), "::", stringify!($case)),)*
                }
            }
        }
    };
}

faults! {
    /// Enqueue answers before the task is on disk.
    EnqueueLostAtReopen breaks EnqDurable, caught by durability::an_acknowledged_task_is_there_after_a_restart;
    /// The key is forgotten when its task ends.
    KeyForgottenAtEnd breaks EnqIdempotent, caught by keys::a_key_is_remembered_after_its_task_ended;
    /// A retried enqueue makes a second task.
    KeyIgnored breaks EnqIdempotent, caught by keys::the_same_key_gives_the_same_task;
    /// Another payload under the same key is accepted in silence.
    KeyConflictSwallowed breaks EnqIdempotent, caught by keys::another_payload_under_the_same_key_is_a_conflict;
    /// The tasks before the bad task of a batch stay.
    BatchHalfApplied breaks BatchAtomic, caught by enqueue::a_batch_with_one_bad_task_leaves_nothing;
    /// A claim keeps the lease number.
    LeaseNotRaised breaks OneLease, caught by claim::each_claim_raises_the_lease_by_one;
    /// A claimed task can be claimed again.
    ClaimLeavesReady breaks OneLease, caught by claim::a_claimed_task_is_not_claimed_again;
    /// The retry of a dead task starts the lease numbers from one.
    RedriveLowersLease breaks OneLease, caught by redrive::a_redrive_never_lowers_the_lease;
    /// Settle checks the task only.
    FenceIgnored breaks Fenced, caught by fence::a_settlement_under_an_old_lease_changes_nothing;
    /// Settle does not check the worker.
    FenceIgnoresWorker breaks Fenced, caught by fence::a_settlement_of_another_worker_changes_nothing;
    /// Any worker may write progress.
    ProgressNotFenced breaks Fenced, caught by fence::progress_under_an_old_lease_is_refused;
    /// A finished task can be cancelled.
    CancelAfterEnd breaks OneTerminal, caught by cancel::an_ended_task_cannot_be_cancelled;
    /// A request to end is lost when the attempt fails.
    CancelForgotten breaks OneTerminal, caught by cancel::a_running_task_asked_to_end_is_cancelled_unless_done;
    /// Any task can be retried by an operator.
    RedriveOfDone breaks OneTerminal, caught by redrive::only_a_dead_task_can_be_redriven;
    /// Settle answers before the end is on disk.
    SettleLostAtReopen breaks DoneDurable, caught by durability::a_settled_task_does_not_run_again_after_a_restart;
    /// A batch that is sent again is applied again.
    ReceiptIgnored breaks DoneDurable, caught by receipts::a_batch_sent_again_gets_its_first_answer;
    /// The sweep waits for three lease times.
    ExpiryTooLate breaks RecoveryBound, caught by expiry::tasks_of_a_dead_worker_are_ready_one_second_after_its_lease;
    /// The sweep acts within the lease.
    ExpiryTooEarly breaks NoFalseDeath, caught by expiry::a_sweep_before_the_grace_second_takes_nothing;
    /// A renewal does not prolong the lease.
    RenewalIgnored breaks NoFalseDeath, caught by lease::a_worker_that_renews_keeps_its_lease;
    /// A worker that was swept may still claim.
    ExpiredWorkerMayClaim breaks NoStranded, caught by lease::an_expired_worker_cannot_claim;
    /// Unclaim only refuses the late claim.
    UnclaimStrands breaks NoStranded, caught by unclaim::an_unclaimed_claim_gives_its_tasks_back;
    /// Unclaim does not refuse the late claim.
    LateClaimAccepted breaks NoStranded, caught by unclaim::a_claim_that_arrives_after_its_unclaim_is_refused;
    /// Reconcile hands nothing back.
    ReconcileStrands breaks NoStranded, caught by reconcile::a_task_that_the_worker_does_not_name_is_handed_back;
    /// Reconcile does not report the leases that a worker has lost.
    LossNotTold breaks OneLease, caught by reconcile::a_lease_that_the_store_does_not_give_the_worker_is_lost;
    /// After a crash, lease numbers continue from the number that the store remembers.
    EpochNotRaised breaks OneLease, caught by forgotten::the_lease_number_of_a_forgotten_claim_is_not_reused;
    /// The tasks of a worker that retires stay leased to it.
    RetireStrands breaks NoStranded, caught by lease::a_retired_worker_leaves_its_tasks_ready;
    /// A claim gives one task more than asked for.
    ClaimTakesTooMany breaks Bounded, caught by claim::a_claim_brings_at_most_as_many_tasks_as_asked_for;
    /// A hand-back costs an attempt.
    ReleaseSpendsAttempt breaks Drain, caught by settle::a_released_task_is_ready_with_its_attempt_given_back;
    /// Tasks are suspects after one crash.
    FirstCrashSuspects breaks PoisonContained, caught by suspects::after_one_crash_all_run_again_at_once;
    /// A worker runs several groups of suspects at once.
    GroupsTogether breaks PoisonContained, caught by suspects::a_worker_runs_one_group_of_suspects_at_a_time;
    /// A crash does not split the group that ran.
    GroupsNotHalved breaks PoisonContained, caught by suspects::a_crash_splits_the_group_that_ran;
    /// A suspect whose group waits keeps its job's room.
    SuspectKeepsRoom breaks PoisonContained, caught by suspects::a_suspect_that_waits_gives_its_room_to_others;
    /// A hand-back clears a suspect that has not ended.
    HandBackClearsSuspect breaks PoisonContained, caught by suspects::a_hand_back_does_not_clear_a_suspect;
    /// A crash costs an attempt.
    CrashSpendsAttempt breaks PoisonContained, caught by suspects::a_crash_gives_the_attempt_back_and_is_counted;
    /// A task dies of a crash although the worker held other tasks too.
    CrowdIsBlamed breaks PoisonContained, caught by suspects::only_a_crash_alone_ends_a_task;
    /// A suspect on its last chance runs beside other tasks.
    NoIsolation breaks PoisonContained, caught by suspects::a_last_chance_has_an_empty_worker_to_itself;
    /// Crashes are counted without limit.
    CrashesWithoutEnd breaks PoisonContained, caught by suspects::a_task_that_crashes_too_often_is_dead_with_a_reason;
    /// A snooze costs an attempt.
    SnoozeSpendsAttempt breaks AttemptBound, caught by settle::a_snoozed_task_waits_with_its_attempt_given_back;
    /// A failure gives its attempt back.
    RetryGivesAttemptBack breaks AttemptBound, caught by settle::a_task_that_always_fails_starts_as_often_as_granted;
    /// Leases are counted by the wall clock.
    WallClockLeases breaks ClockFree, caught by lease::a_jump_of_the_wall_clock_moves_no_lease;
    /// A future start is ready at once.
    StartIgnored breaks Schedule, caught by due::a_future_task_is_not_claimed_before_its_time;
    /// A job admits one task more than its limit.
    LimitCountedTooHigh breaks Limit, caught by jobs::a_limit_is_never_exceeded;
    /// A lower limit leaves ready tasks ready.
    DemotionSkipped breaks Limit, caught by jobs::a_lower_limit_takes_back_ready_tasks_but_no_running_ones;
    /// The limit that an enqueue gives to a new job is not kept.
    GivenLimitIgnored breaks Limit, caught by jobs::the_enqueue_that_makes_a_job_may_give_its_limit;
    /// The limit of an enqueue changes an existing job.
    GivenLimitOverwrites breaks Limit, caught by jobs::a_job_that_is_there_keeps_its_limit_at_an_enqueue;
    /// The room of a task that was handed back stays taken.
    RoomLeakedAtRelease breaks SlotBalanced, caught by jobs::every_end_of_an_attempt_gives_its_room_back_once;
    /// The next step starts when the head has been tried once.
    PassesBeforeSuccess breaks WfOrder, caught by workflows::a_retrying_head_keeps_its_turn;
    /// Steps run by priority.
    OrderByPriority breaks WfOrder, caught by workflows::priority_does_not_reorder_steps;
    /// The next step of a blocked workflow starts.
    BlockedWorkflowPasses breaks WfOrder, caught by workflow_states::a_failed_step_blocks_the_rest_until_an_operator_decides;
    /// The dead step that a workflow waits for can be removed.
    BlockerRemoved breaks NoStranded, caught by remove::the_step_that_blocks_a_workflow_cannot_be_removed;
    /// A job's delay is ignored.
    DelayIgnored breaks Schedule, caught by delay::starts_of_a_job_are_at_least_its_delay_apart;
    /// Tasks that no worker can take use a job's room.
    DeadLaneTakesRoom breaks NoStranded, caught by lanes_alive::tasks_of_a_kind_without_a_worker_take_no_room;
    /// A tick can be fired again.
    TickFiredTwice breaks Schedule, caught by schedules::a_tick_is_fired_once;
    /// A tick is fired before its time.
    TickFiredEarly breaks Schedule, caught by schedules::a_tick_that_has_not_come_is_not_fired;
    /// A tick is fired although its schedule has changed since.
    ChangedScheduleFired breaks Schedule, caught by schedules::a_schedule_that_changed_meanwhile_is_not_fired;
    /// A failure is retried although the attempts are spent.
    RetryBeyondBudget breaks AttemptBound, caught by settle::a_retry_after_the_last_attempt_is_the_end;
    /// New names make lanes without end.
    LanesUnbounded breaks Bounded, caught by lanes::new_lanes_over_the_bound_are_refused;
    /// A lane whose tasks are due later is retired.
    ScheduledLaneRetired breaks NoStranded, caught by lanes::a_lane_with_any_task_is_not_retired;
    /// The next task of a retired lane does not bring it back.
    RetiredLaneStaysAway breaks NoStranded, caught by lanes::a_task_brings_its_retired_lane_back;
    /// The due duty does not check the time.
    DueTooEarly breaks Schedule, caught by due::the_due_duty_promotes_nothing_before_its_time;
}
