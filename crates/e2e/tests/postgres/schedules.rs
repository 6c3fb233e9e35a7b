//! SCHEDULE: several `windlass up` on one schema fire each tick once, even if one of them dies.

use std::collections::BTreeSet;

use e2e::{
    postgres::{Place, until},
    process::Said,
    up::Up,
};
use serde_json::Value;

/// Ticks that must fire before and after a fault.
const TICKS: u64 = 4;

fn up(place: &Place) -> Up {
    Up::start(place.command(["up", "--listen", "127.0.0.1:0", "--slots", "4"]).unwrap()).unwrap()
}

fn done(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// How many ticks have been fired.
fn fired(place: &Place) -> u64 {
    place
        .count(
            "SELECT coalesce((last_at - first_at) / 1000 + 1, 0) FROM windlass.schedule, windlass.first_tick",
        )
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_fire_each_tick_once_and_one_continues_alone() {
    let place = Place::shared().unwrap();
    let (mut first, second) = (up(&place), up(&place));
    // Every second, and late ticks are made up: a missing tick was lost, and an extra one was fired twice.
    let set = place.say([
        "schedules",
        "set",
        "s",
        "echo",
        "--cron",
        "* * * * * *",
        "--missed",
        "skip",
        "--json",
        "--server",
        &first.address,
    ]);
    let set = done(&set.unwrap());
    let start: windlass_core::Timestamp = set["next"][0].as_str().unwrap().parse().unwrap();
    place.ask(&format!("CREATE TABLE windlass.first_tick AS SELECT {} AS first_at", start.as_ms())).unwrap();
    until("both see ticks", || Ok(fired(&place) >= TICKS)).await.unwrap();
    first.process.kill().unwrap();
    let before = fired(&place);
    until("the other goes on", || Ok(fired(&place) >= before + TICKS)).await.unwrap();
    let third = up(&place);
    let before = fired(&place);
    until("a new one joins", || Ok(fired(&place) >= before + TICKS)).await.unwrap();
    let paused = place.say(["schedules", "pause", "s", "--json", "--server", &second.address]).unwrap();
    assert_eq!(done(&paused)["paused"], true);

    let (first_ms, last_ms) = (start.as_ms(), start.as_ms() + (fired(&place) as i64 - 1) * 1_000);
    let list =
        done(&place.say(["tasks", "ls", "--limit", "1000", "--json", "--server", &third.address]).unwrap());
    let keys: Vec<_> =
        list["tasks"].as_array().unwrap().iter().map(|task| task["key"].as_str().unwrap()).collect();
    let expected: BTreeSet<_> =
        (first_ms..=last_ms).step_by(1_000).map(|tick| format!("schedule:s:{tick}")).collect();
    assert_eq!(keys.len(), expected.len(), "{keys:?}");
    assert_eq!(keys.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_say_the_same_with_and_without_a_server() {
    let place = Place::shared().unwrap();
    let up = up(&place);
    let server = ["--server", up.address.as_str()];
    for (name, way) in [("served", &server[..]), ("alone", &[])] {
        let say = |arguments: &[&str]| place.say(arguments.iter().chain(way).copied()).unwrap();
        let set = say(&[
            "schedules",
            "set",
            name,
            "report",
            "--cron",
            "30 8 * * MON-FRI",
            "--tz",
            "Europe/Berlin",
            "--payload",
            "{\"to\":\"ada\"}",
            "--queue",
            "mail",
            "--workflow",
            "w",
            "--on-failure",
            "skip",
        ]);
        assert_eq!((set.code, set.stdout.lines().count()), (Some(0), 3), "{set:?}");
        assert!(set.stderr.contains("no live worker handles kind \"report\""), "{set:?}");
        let shown = done(&say(&["schedules", "show", name, "--json"]));
        let next: Vec<_> = set.stdout.lines().collect();
        assert_eq!(shown["next"], serde_json::json!(next), "UTC without a terminal");
        assert_eq!((&shown["cron"], &shown["task"]["queue"]), (&"30 8 * * MON-FRI".into(), &"mail".into()));
        let text = say(&["schedules", "show", name]).stdout;
        for part in ["on failure   skip", "payload      {\"to\":\"ada\"}", "tz           Europe/Berlin"] {
            assert!(text.contains(part), "{part:?} is missing: {text}");
        }
        let run = say(&["schedules", "run", name]);
        assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 1), "{run:?}");
        assert!(say(&["schedules", "pause", name]).stderr.ends_with(&format!("schedule {name} paused")));
        let list = say(&["schedules", "ls"]);
        let line = list.stdout.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains("30 8 * * MON-FRI  Europe/Berlin  report  paused  -"), "{list:?}");
        assert!(say(&["schedules", "resume", name]).stderr.contains("resumed; next:"));
        let bad = say(&["schedules", "set", name, "report", "--cron", "61 * * * *"]);
        assert_eq!(bad.code, Some(2), "{bad:?}");
        assert!(bad.stderr.contains("minute is \"61\"; allowed are 0 to 59"), "{bad:?}");
        assert!(say(&["schedules", "rm", name]).stderr.ends_with(&format!("schedule {name} removed")));
        for verb in ["show", "pause", "resume", "run", "rm"] {
            let missing = say(&["schedules", verb, name]);
            assert_eq!(missing.code, Some(3), "{verb}: {missing:?}");
        }
    }
}
