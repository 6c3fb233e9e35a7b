//! scripts/audit: an unreachable database does not count as a passed check (S11).

use std::process::Command;

#[test]
fn an_unreachable_advisory_database_is_no_passed_check() {
    let nowhere = tempfile::tempdir().unwrap();
    let said = Command::new(e2e::workspace_root().join("scripts/audit"))
        .env("WINDLASS_ADVISORY_DB", nowhere.path().join("no-such-database"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert_eq!(said.status.code(), Some(3), "{text}");
    assert!(text.starts_with("NOT CHECKED: "), "{text}");
}
