//! The property test, and a test that it finds defects.

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

/// Some faults are left to the cases. A run has no restart, crash of the store, jump of the clock, schedule
/// or lying worker. It hardly ever has a crash of a suspect that has outlived its isolation or that has a
/// job.
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
