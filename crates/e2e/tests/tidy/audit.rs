//! scripts/audit: what could not be looked up does not pass for fine (S11).

use std::process::Command;

#[test]
fn an_advisory_database_that_cannot_be_reached_is_not_checked_and_not_fine() {
    let nowhere = tempfile::tempdir().unwrap();
    let said = Command::new(e2e::workspace_root().join("scripts/audit"))
        .env("WINDLASS_ADVISORY_DB", nowhere.path().join("no-such-database"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert_eq!(said.status.code(), Some(3), "{text}");
    assert!(text.starts_with("NOT CHECKED: "), "{text}");
}
