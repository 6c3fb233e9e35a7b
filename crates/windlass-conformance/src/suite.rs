//! The table of cases, and the macro that turns it into tests of a store.

use std::pin::Pin;

use crate::{harness::Harness, promise::Promise};

/// A running case.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One rule of a store.
#[derive(Clone, Copy)]
pub struct Case {
    /// `file::name`; the name is a sentence.
    pub name: &'static str,
    /// The promise that it shows, if there is one.
    pub promise: Option<Promise>,
    /// Panics if the store breaks the rule.
    pub run: for<'a> fn(&'a dyn Harness) -> Running<'a>,
}

impl Case {
    /// The case of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.name == name)
    }
}

/// Runs the case of this name on a store, on its own runtime.
///
/// # Panics
/// If the store breaks the rule, or there is no such case.
#[expect(clippy::panic, reason = "this is the body of a test")]
pub fn run(name: &str, harness: &dyn Harness) {
    let Some(case) = Case::named(name) else { panic!("there is no case {name}") };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on((case.run)(harness)),
        Err(error) => panic!("no runtime: {error}"),
    }
}

macro_rules! promise {
    () => {
        None
    };
    ($promise:ident) => {
        Some(Promise::$promise)
    };
}

// The dollar sign is passed as a token, because the macro that this macro defines has arguments of its own.
macro_rules! cases {
    (($d:tt) $($file:ident { $($case:ident $([$promise:ident])?,)* })*) => {
        /// Every case.
        pub const CASES: &[Case] = &[$($(
            Case {
                name: concat!(stringify!($file), "::", stringify!($case)),
                promise: promise!($($promise)?),
                run: |harness| Box::pin(crate::cases::$file::$case(harness)),
            },
        )*)*];

        /// Makes a test of every case: `suite!(MyHarness::new());`. The expression is evaluated for each.
        #[macro_export]
        macro_rules! suite {
            ($d harness:expr) => {
                $(
                    mod $file {
                        #[allow(unused_imports, reason = "the harness may be named by a path of its own")]
                        use super::*;
                        $(
                            #[test]
                            fn $case() {
                                let harness = $d harness;
                                $d crate::run(concat!(stringify!($file), "::", stringify!($case)), &harness);
                            }
                        )*
                    }
                )*
            };
        }
    };
}

cases! { ($)
    enqueue {
        a_new_task_is_ready_with_everything_it_was_given,
        bytes_of_every_value_and_of_no_length_are_stored_whole,
        ids_rise_in_the_order_of_enqueue,
        a_batch_answers_in_its_order,
        a_batch_keeps_what_each_task_was_given,
        names_with_invisible_characters_are_refused,
        times_without_a_text_are_refused,
        an_empty_batch_is_no_error,
        a_batch_with_one_bad_task_leaves_nothing [BatchAtomic],
        a_batch_over_the_limit_is_refused,
        a_task_without_a_number_of_attempts_gets_the_default,
        a_task_carries_its_trace_to_every_attempt,
        another_trace_under_the_same_key_is_no_conflict,
    }
    keys {
        the_same_key_gives_the_same_task [EnqIdempotent],
        the_same_key_twice_in_a_batch_gives_one_task [EnqIdempotent],
        the_same_key_in_another_queue_is_another_task,
        another_payload_under_the_same_key_is_a_conflict [EnqIdempotent],
        a_batch_that_contradicts_itself_is_invalid [EnqIdempotent],
        each_task_of_a_batch_is_compared_with_the_holder [EnqIdempotent],
        a_caller_that_ignores_conflicts_hides_none [EnqIdempotent],
        a_conflict_can_be_ignored_by_the_caller [EnqIdempotent],
        a_key_is_remembered_after_its_task_ended [EnqIdempotent],
        a_key_is_free_again_after_its_time,
        many_callers_at_once_with_one_key_make_one_task [EnqIdempotent],
        one_callers_conflict_fails_only_that_caller,
    }
    claim {
        each_claim_raises_the_lease_by_one [OneLease],
        a_claimed_task_is_not_claimed_again [OneLease],
        workers_that_race_take_every_task_once [OneLease],
        a_claim_brings_at_most_as_many_tasks_as_asked_for [Bounded],
        a_claim_says_why_it_brought_no_more,
        the_answer_names_the_next_due_time,
        a_demand_over_many_workers_is_served_for_each,
        a_step_goes_to_the_worker_that_prefers_its_workflow,
        a_preference_does_not_change_which_tasks_are_claimed,
        one_expired_worker_refuses_the_whole_claim,
        a_worker_that_never_registered_cannot_claim,
    }
    order {
        higher_priority_goes_first_then_order_of_entry,
        lanes_share_one_line,
        a_task_that_comes_back_goes_to_the_end_of_the_line,
        a_task_that_becomes_due_goes_to_the_end_of_the_line,
        a_claim_takes_from_its_lanes_only,
        lanes_are_found_by_kind_and_queue,
    }
    settle {
        a_done_task_keeps_its_output_and_its_record [DoneDurable],
        a_failed_task_waits_for_its_next_attempt_with_the_error,
        a_task_that_always_fails_starts_as_often_as_granted [AttemptBound],
        a_retry_after_the_last_attempt_is_the_end [AttemptBound],
        a_snoozed_task_waits_with_its_attempt_given_back [AttemptBound],
        a_released_task_is_ready_with_its_attempt_given_back [Drain],
        released_tasks_are_ready_in_the_order_of_their_ids,
        a_dead_task_stays_with_its_reason,
        a_handler_may_cancel_its_task,
        a_batch_is_settled_whole_with_lanes_and_next_due,
        an_empty_settlement_is_no_error,
        error_text_of_any_sort_is_kept,
        an_attempts_record_is_bounded,
    }
    fence {
        a_settlement_under_an_old_lease_changes_nothing [Fenced],
        a_settlement_of_another_worker_changes_nothing [Fenced],
        a_swept_worker_cannot_settle_a_task_that_another_took [Fenced],
        fenced_items_do_not_hinder_their_neighbours,
        progress_is_kept_while_the_lease_is_held,
        progress_under_an_old_lease_is_refused [Fenced],
        a_result_after_the_lease_counts_if_the_task_was_not_taken,
        racing_settlements_of_one_attempt_have_one_winner [Fenced],
    }
    misnamed {
        a_settlement_naming_another_job_frees_the_room_of_its_own [Limit],
        a_settlement_naming_another_workflow_advances_its_own [WfOrder],
        a_lost_lease_stays_lost_beside_one_without_a_workflow [Fenced],
    }
    receipts {
        a_batch_sent_again_gets_its_first_answer [DoneDurable],
        a_batch_sent_again_does_not_touch_a_later_attempt [Fenced],
        settlers_and_workers_number_their_own_batches,
        a_swept_workers_receipt_is_still_there,
    }
    lease {
        a_registered_worker_is_listed_with_its_report,
        a_renewal_replaces_what_a_worker_had_done,
        ids_of_workers_are_never_reused,
        a_worker_keeps_the_owner_that_registered_it,
        slots_that_were_set_come_back_with_the_next_renewal,
        slots_are_set_within_bounds_and_of_live_workers_only,
        slots_that_were_set_move_the_window_of_jobs,
        a_worker_that_renews_keeps_its_lease [NoFalseDeath],
        a_renewal_after_the_lease_is_refused_for_good,
        an_expired_worker_cannot_claim [NoStranded],
        a_retired_worker_leaves_its_tasks_ready [NoStranded],
        a_jump_of_the_wall_clock_moves_no_lease [ClockFree],
    }
    expiry {
        tasks_of_a_dead_worker_are_ready_one_second_after_its_lease [RecoveryBound],
        a_sweep_before_the_grace_second_takes_nothing [NoFalseDeath],
        a_sweep_takes_only_what_the_dead_worker_held [NoFalseDeath],
        a_bounded_sweep_says_that_there_is_more,
        two_sweeps_at_once_take_each_task_once,
        a_recovered_task_runs_again_and_finishes [RecoveryBound],
    }
    straight {
        a_task_for_a_waiting_worker_is_leased_at_once [OneLease],
        a_task_for_a_waiting_worker_does_not_overtake,
        only_a_plain_task_is_leased_at_enqueue,
        a_task_for_a_worker_that_may_not_claim_is_still_added [EnqDurable],
        unclaim_hands_back_a_task_enqueued_for_a_worker [NoStranded],
    }
    suspects {
        a_crash_gives_the_attempt_back_and_is_counted [PoisonContained],
        after_one_crash_all_run_again_at_once [PoisonContained],
        a_worker_runs_one_group_of_suspects_at_a_time [PoisonContained],
        the_next_group_follows_when_one_has_ended_or_run_long [PoisonContained],
        a_crash_splits_the_group_that_ran [PoisonContained],
        a_suspect_that_waits_gives_its_room_to_others [PoisonContained],
        suspects_are_taken_first_and_others_run_beside_them [PoisonContained],
        any_outcome_of_its_handler_clears_a_suspect [PoisonContained],
        a_hand_back_does_not_clear_a_suspect [PoisonContained],
        only_a_crash_alone_ends_a_task [PoisonContained],
        a_last_chance_has_an_empty_worker_to_itself [PoisonContained],
        a_task_that_crashes_too_often_is_dead_with_a_reason [PoisonContained],
        one_poisonous_task_costs_its_neighbours_nothing [PoisonContained],
    }
    cancel {
        a_task_that_has_not_started_is_cancelled_at_once,
        a_running_task_is_asked_to_end,
        a_running_task_asked_to_end_is_cancelled_unless_done [OneTerminal],
        a_request_to_end_outlives_the_worker,
        an_ended_task_cannot_be_cancelled [OneTerminal],
        each_task_of_a_bulk_cancel_gets_its_answer,
    }
    redrive {
        a_redriven_task_has_its_attempts_again_and_a_record_of_it [AttemptBound],
        a_redrive_never_lowers_the_lease [OneLease],
        a_redrive_may_wait,
        only_a_dead_task_can_be_redriven [OneTerminal],
        a_task_dead_of_crashes_can_be_redriven,
    }
    due {
        a_future_task_is_not_claimed_before_its_time [Schedule],
        the_due_duty_promotes_nothing_before_its_time [Schedule],
        a_start_in_the_past_is_now,
        a_start_in_the_far_future_is_accepted,
        a_bounded_due_duty_says_that_there_is_more,
    }
    pause {
        nothing_is_claimed_from_a_paused_queue,
        a_pause_changes_nothing_the_second_time,
        a_queue_can_be_paused_before_its_first_task,
        running_tasks_of_a_paused_queue_can_be_settled,
    }
    unclaim {
        an_unclaimed_claim_gives_its_tasks_back [NoStranded],
        a_claim_that_arrives_after_its_unclaim_is_refused [NoStranded],
        a_second_unclaim_changes_nothing,
        an_unclaim_does_not_touch_another_worker,
    }
    reconcile {
        a_task_that_the_worker_does_not_name_is_handed_back [NoStranded],
        a_claim_that_may_be_on_its_way_is_left_alone,
        naming_an_old_lease_does_not_keep_the_task,
        a_lease_that_the_store_does_not_give_the_worker_is_lost [OneLease],
    }
    forgotten {
        the_lease_number_of_a_forgotten_claim_is_not_reused [OneLease],
        lease_numbers_are_not_reused_after_very_many_claims,
    }
    inspect {
        pages_bring_every_task_once_newest_first,
        pages_are_not_disturbed_by_tasks_added_meanwhile,
        filters_return_tasks_that_match_all_of_them,
        lane_figures_follow_every_change_of_state,
        the_first_ready_task_of_a_lane_has_a_place_rising_with_time,
        enqueues_with_a_known_key_are_counted_apart,
        an_unknown_task_is_not_there,
        ended_answers_for_ended_and_unknown_tasks,
        ended_waits_for_the_first_end,
        the_store_describes_itself,
        a_closed_store_refuses_every_call,
    }
    filter {
        a_cause_finds_the_dead_tasks_that_have_it,
        a_worker_finds_the_tasks_that_it_runs_or_ran,
        a_key_finds_its_tasks,
        named_tasks_are_found_whether_they_have_ended_or_not,
        a_filter_of_too_many_ids_is_refused,
        a_filter_with_a_nul_is_refused,
        a_time_is_the_end_of_one_filter_and_the_start_of_another,
        a_summary_is_the_task_without_what_it_carries,
    }
    remove {
        a_dead_task_can_be_removed_for_good,
        only_a_dead_task_can_be_removed [OneTerminal],
        the_step_that_blocks_a_workflow_cannot_be_removed [NoStranded],
        the_key_of_a_removed_task_is_remembered [EnqIdempotent],
        a_key_leads_to_its_task,
    }
    retention {
        ended_tasks_are_removed_after_their_time,
        a_task_that_ended_after_younger_ones_is_removed_in_time,
        a_cancelled_blocker_is_removed_once_it_blocks_nothing,
        an_unfinished_task_is_never_removed [EnqDurable],
        history_over_its_size_loses_the_oldest_first,
    }
    durability {
        an_acknowledged_task_is_there_after_a_restart [EnqDurable],
        a_settled_task_does_not_run_again_after_a_restart [DoneDurable],
        a_running_task_is_recovered_after_a_restart [RecoveryBound],
        a_worker_of_another_process_keeps_its_leases_over_a_restart [NoFalseDeath],
        a_lost_worker_of_another_process_loses_its_leases [RecoveryBound],
    }
    fleet {
        a_fleet_with_deaths_finishes_every_task_once [OneLease],
    }
    lost {
        a_keyed_enqueue_in_doubt_is_repeated_without_a_second_task [EnqIdempotent],
        a_claim_in_doubt_is_undone_and_its_tasks_run [NoStranded],
        a_settlement_in_doubt_is_repeated_and_applied_once [DoneDurable],
    }
    audit {
        a_store_in_use_has_no_finding [NoStranded],
    }
    jobs {
        a_limit_is_never_exceeded [Limit],
        several_workers_keep_the_limit_together [Limit],
        every_end_of_an_attempt_gives_its_room_back_once [SlotBalanced],
        a_hand_back_gives_the_room_back [SlotBalanced],
        a_crash_gives_the_room_back [SlotBalanced],
        a_limit_that_rises_lets_more_through_at_once [NoStranded],
        a_lower_limit_takes_back_ready_tasks_but_no_running_ones [Limit],
        with_a_limit_of_zero_nothing_starts [Limit],
        a_job_that_is_first_used_has_the_default_limit [Limit],
        the_enqueue_that_makes_a_job_may_give_its_limit [Limit],
        a_job_that_is_there_keeps_its_limit_at_an_enqueue [Limit],
        a_step_gives_its_job_a_limit_before_its_turn [Limit],
        a_key_that_is_known_gives_no_job_a_limit,
        a_limit_without_a_job_and_one_of_zero_are_refused,
        a_job_without_a_limit_has_a_window_in_the_line,
        jobs_take_turns,
        jobs_released_together_keep_their_own_order,
        a_large_job_delays_a_new_one_by_no_more_than_its_window,
        a_jobs_next_task_has_the_highest_priority_then_age,
        a_task_that_outranks_a_ready_one_takes_its_place,
        tasks_that_fill_a_job_outrank_a_ready_one,
        a_task_that_becomes_due_asks_its_job [Limit],
        a_batch_may_mix_plain_tasks_with_those_of_jobs_and_workflows,
        a_cancelled_task_gives_its_room_to_the_next [NoStranded],
    }
    job_states {
        a_paused_job_starts_nothing_and_goes_on_when_resumed [NoStranded],
        a_job_can_be_paused_before_its_first_task,
        a_cancelled_job_cancels_waiting_and_new_tasks,
        an_enqueue_to_a_cancelled_job_says_so,
        a_task_handed_back_to_a_cancelled_job_is_cancelled,
        a_job_cancelled_now_asks_running_tasks_to_end,
        a_removed_job_is_forgotten_and_its_name_is_a_new_job,
        a_job_is_removed_when_the_last_task_that_runs_has_ended [NoStranded],
        a_job_removed_now_asks_running_tasks_to_end,
        a_job_is_not_removed_by_a_change_of_state,
        a_redriven_task_asks_its_job,
        jobs_are_listed_by_name_in_pages,
        a_task_shows_its_job_and_the_tasks_that_use_its_room,
        a_removed_job_passes_the_turn_of_a_crashed_step_on [NoStranded],
        a_step_cancelled_before_its_turn_makes_no_job,
    }
    delay {
        starts_of_a_job_are_at_least_its_delay_apart [Schedule],
        the_answer_names_the_time_of_the_next_start,
        admit_gives_a_delayed_job_its_turn_when_its_time_has_come [NoStranded],
        a_delay_does_not_lift_the_limit [Limit],
        an_end_before_the_delay_starts_nothing [Schedule],
        a_delay_can_be_set_and_taken_away,
        a_new_delay_counts_from_the_start_of_the_running_task,
        a_delay_holds_up_its_own_job_only,
    }
    lanes {
        new_lanes_over_the_bound_are_refused [Bounded],
        lanes_that_stand_empty_make_room_for_others,
        a_lane_that_is_used_between_two_looks_is_not_retired,
        a_lane_with_any_task_is_not_retired [NoStranded],
        a_task_brings_its_retired_lane_back [NoStranded],
        every_way_to_enqueue_brings_a_lane_back [NoStranded],
        a_task_for_a_waiting_worker_brings_its_lane_back [NoStranded],
        a_retired_lane_is_still_named_by_its_history,
        a_store_with_few_lanes_retires_none,
        names_that_were_used_before_are_never_refused,
        all_lanes_that_were_ever_made_are_bounded,
        a_retired_lane_stays_retired_after_a_restart,
    }
    lanes_alive {
        tasks_of_a_kind_without_a_worker_take_no_room [NoStranded],
        a_task_without_a_worker_outranks_no_ready_one,
        a_new_worker_makes_the_tasks_of_its_lanes_ready [NoStranded],
        a_worker_of_other_queues_makes_no_task_ready,
        tasks_of_a_paused_queue_give_their_room_to_others [NoStranded],
        a_task_handed_back_to_a_paused_queue_gives_up_its_room [NoStranded],
        a_lane_loses_its_room_with_its_last_worker [NoStranded],
        a_plain_task_is_ready_without_any_worker,
    }
    workflows {
        steps_run_one_at_a_time_in_the_order_of_append [WfOrder],
        many_workflows_run_side_by_side [WfOrder],
        a_retrying_head_keeps_its_turn [WfOrder],
        a_head_whose_worker_dies_keeps_its_turn [WfOrder],
        a_step_that_is_due_later_holds_up_the_rest [WfOrder],
        priority_does_not_reorder_steps [WfOrder],
        priority_orders_the_heads_of_workflows,
        a_step_with_a_job_needs_its_turn_and_room [WfOrder],
        a_key_gives_one_step_of_a_job_and_a_workflow [EnqIdempotent],
        a_workflow_is_listed_while_it_has_unfinished_steps,
        concurrent_appends_have_one_order [WfOrder],
    }
    workflow_states {
        a_failed_step_blocks_the_rest_until_an_operator_decides [WfOrder],
        the_first_append_decides_the_policy,
        a_workflow_that_skips_goes_on_after_a_failure [NoStranded],
        a_workflow_that_cancels_ends_the_rest_after_a_failure,
        a_head_that_crashed_too_often_blocks_too [WfOrder],
        a_retry_of_a_workflow_redrives_the_step_that_blocks_it,
        a_redrive_of_the_blocking_step_unblocks_the_workflow [WfOrder],
        a_skip_goes_on_with_the_next_step [NoStranded],
        a_skip_of_the_last_step_ends_the_workflow,
        a_redriven_step_that_was_passed_goes_to_the_end [WfOrder],
        a_redriven_step_makes_its_removed_workflow_again,
        a_cancelled_workflow_ends_its_steps_and_starts_anew,
        a_cancelled_workflow_asks_its_running_step_to_end [WfOrder],
        a_cancel_lifts_a_block,
        a_cancelled_head_blocks_and_can_be_skipped_but_not_retried [WfOrder],
        a_cancelled_step_that_waited_is_left_out [NoStranded],
        cancelling_a_waiting_step_does_not_unblock_its_workflow,
        a_cancelled_job_blocks_the_workflow_of_its_step,
        retention_keeps_the_step_that_blocks_a_workflow [NoStranded],
        retention_leaves_a_cancelled_step_that_blocks [NoStranded],
    }
    schedules {
        schedules_are_kept_and_listed_by_name,
        due_schedules_come_with_the_next_due_time,
        a_tick_is_fired_once [Schedule],
        fires_at_once_have_one_winner [Schedule],
        a_paused_schedule_does_not_fire [Schedule],
        a_replaced_schedule_keeps_its_last_tick,
        a_tick_that_has_not_come_is_not_fired [Schedule],
        a_schedule_that_changed_meanwhile_is_not_fired [Schedule],
        a_missed_tick_can_be_left_out,
        a_tick_whose_task_is_refused_is_not_spent [Schedule],
        the_task_of_a_tick_goes_through_keys_and_gates,
    }
    tokens {
        a_token_is_found_as_it_was_added,
        the_limits_of_a_token_are_kept,
        two_tokens_may_share_a_name_and_are_removed_one_by_one,
        a_token_expires_by_the_clock_of_the_store,
        an_id_belongs_to_one_token,
        tokens_are_bounded,
        tokens_are_there_after_a_restart,
    }
    sessions {
        a_session_is_found_with_its_token,
        a_session_ends_no_later_than_its_token,
        a_revoked_token_ends_its_sessions,
        sessions_of_a_token_are_bounded_and_the_oldest_ends,
        the_last_use_of_a_session_is_recorded,
        sessions_that_have_ended_are_removed,
        sessions_are_there_after_a_restart,
    }
    operators {
        a_run_is_found_as_it_was_started,
        a_run_is_saved_only_in_the_version_that_was_read,
        of_two_that_save_a_run_at_once_one_wins,
        a_run_that_has_ended_stays_ended,
        runs_at_work_are_bounded,
        ended_runs_are_bounded_and_the_oldest_goes,
        calls_are_listed_newest_first,
        calls_are_bounded_and_the_oldest_go,
        runs_and_calls_are_there_after_a_restart,
    }
    why {
        a_plain_task_says_why_it_does_not_run,
        a_task_of_a_job_says_why_it_is_held,
        a_step_says_what_it_waits_for,
    }
    gate_audit {
        a_store_with_gates_in_use_has_no_finding [NoStranded],
        gates_stand_as_they_were_after_a_restart [EnqDurable],
    }
    gate_fleet {
        a_fleet_keeps_every_limit_and_every_order [Limit],
    }
}
