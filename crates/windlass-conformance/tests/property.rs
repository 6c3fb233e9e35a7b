//! The property test, and whether it notices anything.

use std::time::Duration;

use windlass_conformance::{
    Fault, MemoryHarness,
    property::{Effort, check},
};

#[test]
fn the_memory_store_behaves_like_the_model() {
    if let Err(difference) = check(|| Box::new(MemoryHarness::new()), Effort::default()) {
        panic!("{difference}");
    }
}

/// Faults that only show after a restart or a crash, a jump of the clock, in a schedule or to a worker that lies, which a run does not have, or in the
/// crash of a suspect that has outlived its isolation or has a job, which it hardly ever reaches, are left to the cases.
#[test]
fn the_property_notices_faults() {
    let unseen = [
        Fault::EnqueueLostAtReopen,
        Fault::SettleLostAtReopen,
        Fault::EpochNotRaised,
        Fault::WallClockLeases,
        Fault::CrowdIsBlamed,
        Fault::TickFiredTwice,
        Fault::SuspectKeepsRoom,
        Fault::TickFiredEarly,
        Fault::ChangedScheduleFired,
        Fault::RetryBeyondBudget,
    ];
    let escaped: Vec<_> = Fault::ALL
        .iter()
        .filter(|fault| !unseen.contains(fault))
        .filter(|fault| {
            let effort = Effort { cases: 1_024, steps: 100, shrink: Duration::ZERO };
            check(|| Box::new(MemoryHarness::with_fault(Some(**fault))), effort).is_ok()
        })
        .collect();
    assert!(escaped.is_empty(), "not noticed: {escaped:?}");
}
