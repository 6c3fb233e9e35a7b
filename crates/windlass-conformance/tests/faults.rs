//! Shows that the cases can fail: each deliberate defect is caught by the case with the promise that it
//! breaks.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
};

use windlass_conformance::{CASES, Case, Fault, MemoryHarness, Promise, run};

/// Whether a case fails on the in-memory store with this defect.
fn fails(case: &str, fault: Option<Fault>) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(case, &MemoryHarness::with_fault(fault)))).is_err()
}

#[test]
fn every_fault_is_caught_by_its_case() {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let escaped: Vec<_> =
        Fault::ALL.iter().filter(|fault| !fails(fault.caught_by(), Some(**fault))).collect();
    let false_alarms: Vec<_> = Fault::ALL.iter().filter(|fault| fails(fault.caught_by(), None)).collect();
    set_hook(hook);
    assert!(escaped.is_empty(), "not noticed: {escaped:?}");
    assert!(false_alarms.is_empty(), "fails without the fault too: {false_alarms:?}");
}

#[test]
fn each_fault_and_its_case_have_the_same_promise() {
    for fault in Fault::ALL {
        let case = Case::named(fault.caught_by()).unwrap_or_else(|| panic!("no {}", fault.caught_by()));
        assert_eq!(case.promise, Some(fault.promise()), "{fault:?}");
    }
}

#[test]
fn every_promise_of_a_store_has_a_case_and_a_fault() {
    let broken: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.promise()).collect();
    let borne: BTreeSet<_> = CASES.iter().filter_map(|case| case.promise).collect();
    let all = BTreeSet::from(Promise::ALL);
    assert_eq!((&broken, &borne), (&all, &all));
}

#[test]
fn names_of_cases_are_unique() {
    let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
}
