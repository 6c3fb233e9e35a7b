//! The bars of the dashboard.

use serde_json::Value;

use super::bars::{Bench, Figure, at_least, at_most, number};

pub(super) const BENCHES: &[Bench] = &[
    Bench { name: "dashboard", full: &["dashboard"], quick: QUICK, figures },
    Bench { name: "pg_dashboard", full: &["dashboard", "--store", "postgres"], quick: &PG_QUICK, figures },
];

const PG_QUICK: [&str; 15] = [
    "dashboard",
    "--rounds",
    "1",
    "--seconds",
    "10",
    "--tasks",
    "50000",
    "--waiting",
    "100000",
    "--looks",
    "100",
    "--coming-seconds",
    "60",
    "--store",
    "postgres",
];
/// The same without a store: in files.
const QUICK: &[&str] = PG_QUICK.split_at(PG_QUICK.len() - 2).0;

fn figures(v: &Value) -> Option<Vec<Figure>> {
    Some(vec![
        at_most("cores, 100 viewers", number(v, "cpu_cores")?, 0.1),
        at_least("drain, 100 viewers / none", number(v, "drain_ratio")?, 0.97),
        at_most("first page p99_ms", number(v, "first_page_p99_ms")?, 50.0),
        at_most("no match p99_ms", number(v, "no_match_p99_ms")?, 250.0),
        at_most("one task p99_ms", number(v, "one_task_p99_ms")?, 20.0),
        at_most("memory, last / first third", number(v, "memory_growth")?, 1.1),
    ])
}
