//! Settings: where they come from, and which are refused.

use crate::support::{Running, command, finish, windlass};

/// The row of a setting in `config check --json`.
fn row(said: &crate::support::Said, key: &str) -> (String, String) {
    let json = said.json();
    let row = json["settings"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap().clone();
    (row["value"].as_str().unwrap().to_owned(), row["origin"].as_str().unwrap().to_owned())
}

#[test]
fn the_written_file_is_valid_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let before = windlass(folder.path(), &["config", "check", "--json"]).done();
    windlass(folder.path(), &["config", "init"]).done();
    let after = windlass(folder.path(), &["config", "check", "--json"]).done();
    assert_eq!(before.json()["settings"], after.json()["settings"]);
    assert_eq!(after.json()["file"], "windlass.toml");
    windlass(folder.path(), &["config", "init"]).failed(4, &["windlass.toml exists"]);
}

#[test]
fn check_shows_every_value_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("windlass.toml"), "slots = 5\n\nhistory_days = \"12h\"\n").unwrap();
    let mut check = command(folder.path(), &["config", "check", "--json"]);
    check.env("MAX_CONCURRENT_TASKS", "7").env("WINDLASS_MAX_ATTEMPTS", "3");
    let said = finish(check).done();
    assert_eq!(row(&said, "slots"), ("7".into(), "MAX_CONCURRENT_TASKS".into()));
    assert_eq!(row(&said, "max_attempts"), ("3".into(), "WINDLASS_MAX_ATTEMPTS".into()));
    assert_eq!(row(&said, "history_days"), ("12h".into(), "windlass.toml:3".into()));
    assert_eq!(row(&said, "lease_ttl_ms"), ("10s".into(), "default".into()));
}

#[test]
fn a_preset_gives_the_slots_and_a_bound_that_cuts_it_warns() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("windlass.toml"), "env = \"production\"\n").unwrap();
    let said = windlass(folder.path(), &["config", "check", "--json"]).done();
    assert_eq!(row(&said, "slots"), ("500".into(), "env production".into()));
    for (variable, value, slots, origin) in [
        ("WORKER_CONCURRENCY", "2", "200", "env production"),
        ("WINDLASS_WORKER_CONCURRENCY", "10", "1000", "env production"),
        ("WINDLASS_ENV", "staging", "60", "env staging"),
        ("WINDLASS_SLOTS", "900", "900", "WINDLASS_SLOTS"),
        ("MAX_CONCURRENT_TASKS", "900", "500", "env production"),
    ] {
        let mut check = command(folder.path(), &["config", "check", "--json"]);
        check.env(variable, value);
        let said = finish(check).done();
        assert_eq!(row(&said, "slots"), (slots.into(), origin.into()), "{variable}={value}");
        assert!(!said.stderr.contains("warning"), "{said:?}");
    }
    let mut check = command(folder.path(), &["config", "check", "--json"]);
    check.env("MAX_CONCURRENT_TASKS", "300");
    let said = finish(check).done();
    assert_eq!(row(&said, "slots"), ("300".into(), "MAX_CONCURRENT_TASKS".into()));
    assert!(said.stderr.contains("warning: env production asks for 500 slots"), "{said:?}");
}

#[test]
fn a_preset_is_on_the_first_screen_with_its_product() {
    let up = Running::up(&["--env", "development"]);
    up.signal(rustix::process::Signal::TERM);
    let said = up.end().done();
    assert!(said.stdout.contains("  worker   10 slots (development: 5 × 2) · kinds"), "{said:?}");
}

#[test]
fn every_command_refuses_an_unknown_key_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("windlass.toml"), "slots = 5\nslosts = 7\n").unwrap();
    for arguments in [vec!["config", "check"], vec!["up"], vec!["tasks", "ls"]] {
        let said = windlass(folder.path(), &arguments);
        said.failed(2, &["windlass.toml, line 2", "\"slosts\"", "did you mean \"slots\"?"]);
    }
}

#[test]
fn a_number_out_of_bounds_is_moved_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = command(folder.path(), &["config", "check", "--json"]);
    check.env("WINDLASS_SLOTS", "200000");
    let said = finish(check).done();
    assert_eq!(row(&said, "slots").0, "100000");
    assert!(
        said.stderr.contains("warning: slots 200000") && said.stderr.contains("100000 is used"),
        "{said:?}"
    );
}

#[test]
fn an_invalid_value_is_refused_with_the_setting_name() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, parts) in [
        (vec!["up", "--slots", "0"], vec!["slots", "--slots"]),
        (vec!["up", "--slots", "-3"], vec!["slots", "-3"]),
        (vec!["up", "--slots", "many"], vec!["slots", "many"]),
        (vec!["up", "--env", "prod"], vec!["env", "production, staging, development"]),
        (vec!["up", "--listen", "7878"], vec!["listen", "127.0.0.1:7878"]),
        (vec!["up", "--drain-timeout", "soon"], vec!["drain_timeout_ms", "soon"]),
        (vec!["up", "--drain-timeout", "30"], vec!["drain_timeout_ms", "30s or 30ms", "--drain-timeout"]),
        (vec!["worker", "--drain-timeout", "0"], vec!["drain_timeout_ms", "0s"]),
        (vec!["consume", "--drain-timeout", "30"], vec!["drain_timeout_ms", "30s"]),
        (vec!["up", "--allow-target", "10.0.0.0/99"], vec!["allow_target", "10.0.0.0/99"]),
        (vec!["up", "--durability", "some"], vec!["durability", "full, normal"]),
        (vec!["up", "--config", "nowhere.toml"], vec!["nowhere.toml"]),
        (vec!["up", "--store", "windlass.db"], vec!["windlass.db", "sqlite:"]),
    ] {
        windlass(folder.path(), &arguments).failed(2, &parts);
    }
    let mut up = command(folder.path(), &["up"]);
    up.env("WINDLASS_KIND_LATENCY_THRESHOLDS", "mail=250");
    finish(up).failed(2, &["kind_latency_thresholds", "250ms"]);
    let mut up = command(folder.path(), &["up"]);
    up.env("WINDLASS_HEARTBEAT_MS", "9000");
    finish(up).failed(2, &["heartbeat_ms", "lease_ttl_ms"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn a_value_is_shown_as_the_user_would_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = command(folder.path(), &["config", "check"]);
    // The unit is part of these variables' names.
    check.env("WINDLASS_DRAIN_TIMEOUT_MS", "1500").env("WINDLASS_MEMORY_LIMIT", "3MiB");
    std::fs::write(folder.path().join("windlass.toml"), "audit_ms = 60000\nmemory_high = \"75%\"\n").unwrap();
    let said = finish(check).done();
    let store = format!("sqlite:{}", folder.path().join("windlass.db").display());
    for (setting, value) in [
        ("drain_timeout_ms", "1500ms"),
        ("audit_ms", "1m"),
        ("memory_high", "0.75"),
        ("history_max_bytes", "1 GiB"),
        ("memory_limit", "3 MiB"),
        ("store", &store),
    ] {
        let line = said.stdout.lines().find(|line| line.split_whitespace().next() == Some(setting)).unwrap();
        let shown = line.strip_prefix(setting).unwrap().trim_start();
        assert!(shown.starts_with(&format!("{value} ")), "{line}");
    }
}

#[test]
fn up_on_a_public_address_needs_insecure() {
    let folder = tempfile::tempdir().unwrap();
    let said = windlass(folder.path(), &["up", "--listen", "0.0.0.0:0"]);
    said.failed(4, &["0.0.0.0:0", "--insecure"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}
