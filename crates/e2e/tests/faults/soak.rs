//! A mixed load on the whole program, which is killed every minute.

use e2e::process;
use serde_json::Value;

use crate::is_long;

/// Two minutes; ten with `--long`.
#[test]
fn a_mixed_load_with_kills_leaves_nothing_behind() {
    let minutes = if is_long() { "10" } else { "2" };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["soak", "--minutes", minutes, "--rate", "100", "--json"];
    let output = process::bench().unwrap().args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((number("audit"), number("unfinished")), (0, 0), "{figures}");
    assert!(number("kills") >= 1 && number("enqueued") > 1_000 && number("cancelled") > 10, "{figures}");
    assert!(figures["samples"].as_array().unwrap().len() >= 10, "{figures}");
    for figure in ["rss", "open_files", "async_tasks", "store", "wal"] {
        assert!(figures["slopes"][figure].is_number(), "{figure}: {figures}");
    }
}
