use super::*;

const MIB: u64 = 1 << 20;

/// Memory use in per cent of a small machine, on which memory is never ample.
fn at(percent: u64) -> MemorySample {
    MemorySample { used: percent, limit: 100 }
}

fn seen(slots: u32, in_flight: u32, memory: impl Into<Option<MemorySample>>) -> Seen {
    Seen { memory: memory.into(), slots, in_flight, ..Seen::default() }
}

/// Admission control after its slow start.
fn steady() -> Admission {
    let mut admission = Admission::default();
    admission.start.share = 1.0;
    admission
}

#[test]
fn all_slots_may_be_used_after_the_start_without_pressure() {
    let mut admission = steady();
    for percent in [0, 50, 74, 75, 79, 80] {
        admission.sample(&seen(1_000, 1_000, at(percent)));
        assert_eq!(admission.allowed(1_000), 1_000, "{percent} %");
        assert!(admission.reasons(1_000).is_empty());
    }
}

#[test]
fn short_memory_halves_the_allowed_slots_at_every_sample() {
    for (slots, expected) in
        [(1_000, [500, 250, 125, 62, 31]), (9, [4, 2, 1, 1, 1]), (1, [1, 1, 1, 1, 1]), (10, [5, 2, 1, 1, 1])]
    {
        let mut admission = steady();
        for allowed in expected {
            admission.sample(&seen(slots, slots, at(81)));
            assert_eq!(admission.allowed(slots), allowed, "{slots} slots");
            assert_eq!(admission.reasons(slots).to_string(), "memory");
        }
    }
}

#[test]
fn short_memory_always_leaves_one_slot() {
    let mut admission = steady();
    for _ in 0..200 {
        admission.sample(&seen(100_000, 1, at(90)));
        assert!(admission.allowed(100_000) >= 1 && admission.allowed(1) == 1);
    }
    for _ in 0..500 {
        let running = admission.allowed(100_000);
        admission.sample(&seen(100_000, running, at(10)));
    }
    assert_eq!(admission.allowed(100_000), 100_000);
}

#[test]
fn memory_below_the_lower_mark_recovers_in_small_steps() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 1_000, at(85)));
    for percent in [80, 78, 76, 75] {
        admission.sample(&seen(1_000, 500, at(percent)));
        assert_eq!(admission.allowed(1_000), 500, "{percent} %");
    }
    let mut before = 500;
    for _ in 0..20 {
        let running = admission.allowed(1_000);
        admission.sample(&seen(1_000, running, at(74)));
        let now = admission.allowed(1_000);
        assert!(now <= 1_000 && now <= before + before / 10 + 2, "{before} to {now}");
        assert!(now > before || now == 1_000);
        before = now;
    }
    assert_eq!(before, 1_000);
    assert!(admission.reasons(1_000).is_empty());
}

#[test]
fn unused_slots_are_not_raised_without_ample_memory() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 1_000, at(85)));
    admission.sample(&seen(1_000, 3, at(10)));
    assert_eq!(admission.allowed(1_000), 500, "three running tasks do not show the cost of five hundred");
    let ample = Some(MemorySample { used: 0, limit: 64 << 30 });
    admission.sample(&seen(1_000, 3, ample));
    assert_eq!(admission.allowed(1_000), 550);
}

#[test]
fn short_memory_allows_no_more_than_runs_already() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 150, at(85)));
    assert_eq!(admission.allowed(1_000), 150, "half of a thousand is more than the 300 that run");
    admission.sample(&seen(1_000, 150, at(85)));
    assert_eq!(admission.allowed(1_000), 75);
    let mut idle = steady();
    idle.sample(&seen(1_000, 0, at(85)));
    assert_eq!(idle.allowed(1_000), 100, "an idle worker falls back to where a new one starts");
}

#[test]
fn above_ninety_five_percent_nothing_starts_while_anything_runs() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 1_000, at(96)));
    assert_eq!(admission.allowed(1_000), 1);
    assert_eq!(super::super::demand(admission.allowed(1_000), 1, 50), 0);
    assert_eq!(super::super::demand(admission.allowed(1_000), 0, 50), 1, "and one while nothing runs");
    assert_eq!(admission.reasons(1_000).to_string(), "memory_stop");
    admission.sample(&seen(1_000, 600, at(95)));
    assert_eq!(admission.allowed(1_000), 250, "the share was halved during the stop too");
    assert_eq!(admission.reasons(1_000).to_string(), "memory");
}

#[test]
fn latency_and_memory_factors_are_multiplied() {
    let mut admission = steady();
    admission.sample(&Seen { is_slow: true, ..seen(1_000, 1_000, at(10)) });
    assert_eq!((admission.allowed(1_000), admission.allowed(9), admission.allowed(1)), (700, 6, 1));
    assert_eq!(admission.reasons(1_000).to_string(), "latency");
    admission.sample(&Seen { is_slow: true, ..seen(1_000, 700, at(85)) });
    assert_eq!(admission.allowed(1_000), 350);
    assert_eq!(admission.reasons(1_000).to_string(), "memory+latency");
    admission.sample(&Seen { is_slow: true, ..seen(1_000, 350, at(99)) });
    assert_eq!((admission.allowed(1_000), admission.allowed(1)), (1, 1));
    assert_eq!(admission.reasons(1_000).to_string(), "memory_stop+latency");
    admission.sample(&seen(1_000, 1, at(78)));
    assert_eq!(admission.allowed(1_000), 250, "fast tasks count at once, memory stays");
}

#[test]
fn slow_start_doubles_a_tenth_per_completed_round() {
    let mut admission = Admission::default();
    let mut ended = 0;
    for (allowed, next) in [(100, 200), (200, 400), (400, 800), (800, 1_000)] {
        assert_eq!(admission.allowed(1_000), allowed);
        assert_eq!(admission.reasons(1_000).to_string(), "start");
        ended += u64::from(allowed) - 1;
        admission.sample(&Seen { ended, ..seen(1_000, allowed, None) });
        assert_eq!(admission.allowed(1_000), allowed, "one task is missing from the round");
        ended += 1;
        admission.sample(&Seen { ended, ..seen(1_000, allowed, None) });
        assert_eq!(admission.allowed(1_000), next);
    }
    assert!(!admission.is_starting() && admission.reasons(1_000).is_empty());
}

#[test]
fn a_worker_with_nine_slots_has_no_slow_start() {
    let admission = Admission::default();
    assert_eq!((admission.allowed(1), admission.allowed(9), admission.allowed(10)), (1, 9, 1));
    assert!(admission.reasons(9).is_empty() && admission.reasons(10).start);
}

#[test]
fn ample_memory_doubles_the_start_with_every_sample() {
    let mut admission = Admission::default();
    let memory = Some(MemorySample { used: 1 << 30, limit: 16 << 30 });
    for allowed in [200, 400, 800, 1_000] {
        admission.sample(&seen(1_000, admission.allowed(1_000), memory));
        assert_eq!(admission.allowed(1_000), allowed);
    }
    let mut many = Admission::default();
    many.sample(&seen(10_000, 1_000, memory));
    assert_eq!(many.allowed(10_000), 1_000, "sixteen gigabytes are not ample for ten thousand slots");
}

#[test]
fn long_tasks_complete_a_round_when_memory_is_steady() {
    let mut admission = Admission::default();
    let second = Duration::from_secs(1);
    let quarter =
        |in_flight: u32, percent| Seen { passed: second / 4, ..seen(1_000, in_flight, at(percent)) };
    for expected in [100, 100, 100, 100, 200, 200, 200, 200, 200, 400] {
        let running = admission.allowed(1_000);
        admission.sample(&quarter(running, 10));
        assert_eq!(admission.allowed(1_000), expected);
    }
    for _ in 0..20 {
        admission.sample(&quarter(399, 10));
        assert_eq!(admission.allowed(1_000), 400, "with a slot unused, the round is not complete");
    }
    for percent in (12..=60).step_by(3) {
        admission.sample(&quarter(400, percent));
        assert_eq!(admission.allowed(1_000), 400, "what they hold still grows");
    }
}

#[test]
fn long_tasks_start_only_while_memory_has_room() {
    let mut admission = Admission::default();
    let with = |tasks: u64| Some(MemorySample { used: (20 + tasks) * MIB, limit: 256 * MIB });
    let second = Duration::from_secs(1);
    admission.sample(&seen(1_000, 0, with(0)));
    for _ in 0..10 {
        let running = admission.allowed(1_000);
        admission.sample(&Seen { passed: second, ..seen(1_000, running, with(u64::from(running))) });
    }
    assert_eq!(admission.allowed(1_000), 184, "204.8 MiB less the 20 of the process itself, at one each");
    assert_eq!(admission.reasons(1_000).to_string(), "memory");
}

#[test]
fn an_idle_feeder_does_not_hold_up_the_start_of_a_busy_one() {
    let mut admission = Admission::default();
    let second = Duration::from_secs(1);
    let both =
        |in_use| Seen { busiest: Some((in_use, 1_000)), passed: second, ..seen(2_000, in_use, at(10)) };
    admission.sample(&both(100));
    admission.sample(&both(100));
    assert_eq!(admission.allowed(1_000), 200);
}

#[test]
fn the_start_ends_where_memory_has_no_room_for_more() {
    let mut admission = Admission::default();
    let with = |tasks: u64| Some(MemorySample { used: (20 + tasks) * MIB, limit: 256 * MIB });
    admission.sample(&seen(1_000, 0, with(0)));
    admission.sample(&seen(1_000, 100, with(100)));
    admission.sample(&Seen { ended: 100, ..seen(1_000, 60, with(60)) });
    assert_eq!(admission.allowed(1_000), 184, "204.8 MiB less the 20 of the process itself, at one each");
    admission.sample(&seen(1_000, 184, with(184)));
    admission.sample(&Seen { ended: 290, ..seen(1_000, 180, with(180)) });
    assert_eq!(admission.allowed(1_000), 184);
    assert_eq!(
        admission.reasons(1_000).to_string(),
        "memory",
        "the slow start is over: it is not the reason"
    );
}

#[test]
fn short_memory_ends_the_start_at_half_of_the_running_tasks() {
    let mut admission = Admission::default();
    admission.sample(&seen(1_000, 100, at(85)));
    assert_eq!(admission.allowed(1_000), 50);
    assert_eq!(admission.reasons(1_000).to_string(), "memory");
}

#[test]
fn another_memory_share_moves_recovery_but_not_the_stop() {
    let mut admission = Admission::new(0.5);
    admission.start.share = 1.0;
    admission.sample(&seen(100, 100, at(51)));
    assert_eq!(admission.allowed(100), 50);
    admission.sample(&seen(100, 50, at(46)));
    assert_eq!(admission.allowed(100), 50);
    admission.sample(&seen(100, 50, at(44)));
    assert_eq!(admission.allowed(100), 55);
    admission.sample(&seen(100, 50, at(96)));
    assert_eq!(admission.allowed(100), 1);
}

/// Takes samples, each with as many tasks running as are allowed.
fn go_on(admission: &mut Admission, slots: u32, percent: u64, samples: usize) -> Vec<u32> {
    let step = |_| {
        let running = admission.allowed(slots);
        admission.sample(&seen(slots, running, at(percent)));
        admission.allowed(slots)
    };
    (0..samples).map(step).collect()
}

#[test]
fn flat_memory_does_not_leave_one_task_for_ever() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 200, at(82)));
    let down = go_on(&mut admission, 1_000, 82, 10);
    assert_eq!(down, [100, 50, 25, 12, 6, 3, 1, 1, 1, 1], "it halves as long as that takes something away");
    let up = go_on(&mut admission, 1_000, 82, 100);
    assert!(up.iter().all(|allowed| *allowed <= 100), "never above half of what ran: {up:?}");
    assert!(up.is_sorted() && up.last() == Some(&100), "{up:?}");
    assert_eq!(admission.reasons(1_000).to_string(), "memory");
}

#[test]
fn memory_that_grows_again_halves_the_next_recovery_limit() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 200, at(82)));
    go_on(&mut admission, 1_000, 82, 100);
    assert_eq!(admission.allowed(1_000), 100);
    assert_eq!(go_on(&mut admission, 1_000, 85, 3), [50, 25, 12]);
    let up = go_on(&mut admission, 1_000, 85, 100);
    assert_eq!(up.iter().max(), Some(&50), "half of the hundred under which it grew: {up:?}");
    assert_eq!(go_on(&mut admission, 1_000, 96, 20).last(), Some(&1), "above 95 % the stop holds");
    assert_eq!(go_on(&mut admission, 1_000, 20, 100).last(), Some(&1_000));
}

#[test]
fn flat_memory_between_the_shares_recovers_half() {
    let mut admission = steady();
    admission.sample(&seen(1_000, 1_000, at(85)));
    go_on(&mut admission, 1_000, 85, 3);
    assert_eq!(admission.allowed(1_000), 62);
    let up = go_on(&mut admission, 1_000, 78, 60);
    assert_eq!((up.first(), up.last()), (Some(&62), Some(&500)), "{up:?}");
}
