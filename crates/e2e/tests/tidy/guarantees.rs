//! docs/guarantees.md against the tree: every promise has a section, and every test that it names exists.

use std::collections::BTreeSet;

/// Every promise of the project, including those without tests so far.
const PROMISES: [&str; 37] = [
    "ENQ-DURABLE",
    "ENQ-IDEMPOTENT",
    "BATCH-ATOMIC",
    "ONE-LEASE",
    "FENCED",
    "ONE-TERMINAL",
    "DONE-DURABLE",
    "FAILOVER-KEEPS",
    "RECOVERY-BOUND",
    "NO-FALSE-DEATH",
    "SELF-FENCE",
    "WF-ORDER",
    "LIMIT",
    "SLOT-BALANCED",
    "NO-STRANDED",
    "HINTS-ONLY",
    "BOUNDED",
    "DRAIN",
    "POISON-CONTAINED",
    "ATTEMPT-BOUND",
    "CLOCK-FREE",
    "SCHEDULE",
    "ACK-AFTER",
    "LIVENESS-TRUTH",
    "SCHEMA-SAFE",
    "SILENT-NEVER",
    "S1",
    "S2",
    "S3",
    "S4",
    "S5",
    "S6",
    "S7",
    "S8",
    "S9",
    "S10",
    "S11",
];

/// One `## NAME` section.
struct Section {
    name: String,
    /// Names in backticks at the start of a list item under "Shown by".
    tests: Vec<String>,
    /// Whether it has a line that starts with "Not yet shown".
    is_open: bool,
}

fn sections() -> Vec<Section> {
    let text = e2e::read("docs/guarantees.md");
    let chunks = text.split("\n## ").skip(1);
    chunks
        .map(|chunk| {
            let name = chunk.lines().next().unwrap_or_default().trim().to_owned();
            let tests = chunk
                .lines()
                .skip_while(|line| !line.starts_with("Shown by"))
                .filter_map(|line| line.strip_prefix("- `"))
                .filter_map(|rest| rest.split('`').next())
                .map(str::to_owned)
                .collect();
            let is_open = chunk.lines().any(|line| line.starts_with("Not yet shown"));
            Section { name, tests, is_open }
        })
        .collect()
}

/// The names of all test functions: they have a test attribute, or are cases of the store suite, which each
/// store calls by name.
fn test_functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in e2e::files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let is_suite = path.starts_with("crates/windlass-conformance/src/cases");
        let mut is_marked = false;
        for line in e2e::read(&path).lines().map(str::trim_start) {
            if line.starts_with("#[") {
                is_marked |= line.contains("test]") || line.contains("::test(");
            } else if let Some((before, after)) = line.split_once("fn ") {
                let is_declaration =
                    before.split_whitespace().all(|word| ["pub", "async", "pub(crate)"].contains(&word));
                let name = after.split(['(', '<']).next().unwrap_or_default();
                let is_case = is_suite && after.contains("&dyn Harness");
                if is_declaration && (is_marked || is_case) {
                    names.insert(name.to_owned());
                }
                is_marked = false;
            } else if !line.starts_with("//") {
                is_marked = false;
            }
        }
    }
    names
}

#[test]
fn every_promise_has_one_section() {
    let found: Vec<String> = sections().into_iter().map(|section| section.name).collect();
    let known: Vec<String> = PROMISES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(found, known, "sections of docs/guarantees.md, in the order of the promises");
}

#[test]
fn every_promise_has_tests_or_is_listed_as_not_yet_shown() {
    for section in sections() {
        assert!(
            !section.tests.is_empty() || section.is_open,
            "{}: neither tests nor \"Not yet shown\"",
            section.name
        );
    }
}

#[test]
fn every_test_that_a_promise_names_exists() {
    let known = test_functions();
    let mut missing = Vec::new();
    for section in sections() {
        for test in section.tests.iter().filter(|test| !known.contains(*test)) {
            missing.push(format!("{}: {test}", section.name));
        }
    }
    assert!(missing.is_empty(), "named in docs/guarantees.md but no test: {missing:#?}");
}
