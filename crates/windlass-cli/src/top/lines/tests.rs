use std::time::Duration;

use serde_json::json;
use windlass_core::store::Depth;
use windlass_server::api::Snapshot;

use super::*;
use crate::top::view::{
    Key,
    tests::{board, name, task, view},
};

fn shown(view: &View, width: usize, height: usize) -> String {
    let lines = lines(view, width, height);
    assert_eq!(lines.len(), height, "as many lines as the terminal has");
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    for line in &text {
        assert!(line.chars().count() <= width, "{} letters in {width}: {line:?}", line.chars().count());
    }
    text.join("\n")
}

#[track_caller]
fn assert_shows(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn the_board_fits_and_shows_everything_at_both_sizes() {
    let mut view = view();
    let mut later = board();
    later.overview.enqueued += 30;
    view.saw(later, Duration::from_secs(3));
    for (width, height) in [(80, 24), (140, 40)] {
        let text = shown(&view, width, height);
        assert_shows(
            &text,
            &[
                "windlass top http://127.0.0.1:7878",
                "in   15.0/s",
                "slots 7/50",
                "QUEUES 2",
                "> default",
                "1,234",
                "mail PAUSED",
                "JOBS 1",
                "3/3",
                "WORKERS 1",
                "7/50",
                "82%",
                "50%",
                "memory",
                "q quit",
            ],
        );
    }
}

/// A snapshot in which the queue `default` grows, taken at this second.
fn snapshot(second: u32) -> Snapshot {
    let flow = json!({
        "depth": Depth { ready: 1_234, running: 7, ..Depth::default() }, "oldest_ready_ms": 61_000, "in_per_s": 12.0,
        "out_per_s": 8.0, "done_per_s": 7.5, "failed_per_s": 0.5,
        "forecast": {"kind": "not_at_this_rate", "sentence": "will not clear at this rate: 12/s come in, 8.0/s leave"}
    });
    let mut queue = flow.clone();
    let own = json!({"queue": "default", "paused": false, "kinds": 1, "kinds_without_worker": []});
    queue.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    let attention =
        |n: u32| json!({"code": "x", "sentence": format!("queue q{n} is paused"), "about": "queue"});
    serde_json::from_value(json!({
        "at": format!("2027-01-31T09:30:{second:02}Z"), "figures_at": "2027-01-31T09:30:00Z", "every_ms": 2_000,
        "store": {"ok": true, "answered_in_ms": 1}, "total": flow, "queues": [queue], "more_queues": 0,
        "workers": {"live": 2, "draining": 0, "stale": 0, "held_back": 0, "slots": 100, "running": 14},
        "jobs_at_limit": [], "blocked_workflows": [], "attention": [attention(1), attention(2)]
    }))
    .unwrap()
}

#[test]
fn the_rates_of_the_fleet_come_from_the_snapshot() {
    let mut view = view();
    for second in [2, 2, 4] {
        view.saw(Board { snapshot: Some(snapshot(second)), ..board() }, Duration::from_secs(second.into()));
    }
    assert_eq!(view.rates.enqueued.line(3).trim_start().chars().count(), 2, "one for each snapshot");
    for (width, height) in [(80, 24), (140, 40)] {
        let text = shown(&view, width, height);
        assert_shows(
            &text,
            &[
                "in   12.0/s",
                "done    7.5/s",
                "failed    0.5/s",
                "slots 14/100",
                "oldest 1 min 1 s · will not clear at this rate: 12/s come in",
                "! queue q1 is paused (+1 more)",
            ],
        );
    }
    let text = shown(&view, 140, 40);
    let line = text.lines().find(|line| line.starts_with("> default")).unwrap();
    assert!(line.trim_end().ends_with("12.0      7.5      0.5    1 min 1 s  never so"), "{line}");
}

#[test]
fn every_screen_fits_every_size() {
    let mut views = vec![View::new("http://x".repeat(40)), view()];
    let mut many = board();
    many.queues = (0..50)
        .map(|n| Queue { name: name(&format!("{}-{n}", "long".repeat(25))), ..many.queues[0].clone() })
        .collect();
    let mut crowded = view();
    crowded.saw(many, Duration::from_secs(2));
    for _ in 0..45 {
        crowded.press(Key::Down);
    }
    views.push(crowded);
    for screen in [
        Screen::Help(Box::new(Screen::Board)),
        Screen::Tasks { of: Of::Job(name("j")), tasks: Some((0..99).map(task).collect()), selected: 98 },
        Screen::Tasks { of: Of::Job(name("j")), tasks: None, selected: 0 },
        Screen::Task {
            id: task(1).id,
            lines: Some(vec![("error".to_owned(), "x".repeat(500)); 80]),
            scroll: 70,
            from: Box::new(Screen::Board),
        },
    ] {
        let mut other = view();
        (other.screen, other.lost) = (screen, Some("a\u{1b}[2J reason".to_owned()));
        views.push(other);
    }
    for view in &views {
        for (width, height) in [(80, 24), (140, 40), (60, 10), (20, 5), (1, 1), (300, 100)] {
            // The terminal cuts long lines, so only the two usual sizes must fit without that.
            if width >= 80 {
                shown(view, width, height);
            } else {
                assert_eq!(lines(view, width, height).len(), height);
            }
        }
    }
}

#[test]
fn the_selected_row_is_always_in_sight() {
    let mut view = view();
    let mut many = board();
    many.queues =
        (0..50).map(|n| Queue { name: name(&format!("q{n:02}")), ..many.queues[0].clone() }).collect();
    view.saw(many, Duration::from_secs(2));
    for n in 0..50 {
        let text = shown(&view, 80, 24);
        assert_shows(&text, &[&format!("> q{n:02}"), "JOBS 1", "WORKERS 1"]);
        view.press(Key::Down);
    }
}

#[test]
fn a_lost_server_is_named_and_the_last_board_stays() {
    let mut view = view();
    view.lost = Some("connection refused".to_owned());
    assert_shows(&shown(&view, 80, 24), &["SERVER GONE: connection refused; trying again", "> default"]);
}

#[test]
fn a_worker_that_missed_its_renewals_is_shown_as_stale() {
    let mut view = view();
    let mut late = board();
    for worker in &mut late.workers {
        (worker.state, worker.factor, worker.reason) = (WorkerState::Stale, 1.0, String::new());
    }
    view.saw(late, Duration::from_secs(2));
    let text = shown(&view, 80, 24);
    let line = text.lines().find(|line| line.contains("mill")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["w1", "mill", "7/50", "82%", "100%", "stale"]);
}

#[test]
fn names_cannot_move_the_cursor() {
    let mut view = view();
    let mut bad = board();
    bad.workers[0].host = "a\u{1b}[2Jb\r\n".to_owned();
    bad.workers[0].reason = "\u{7}ring".to_owned();
    view.saw(bad, Duration::from_secs(2));
    assert!(!shown(&view, 80, 24).replace('\n', "").chars().any(char::is_control));
}

#[test]
fn the_section_in_focus_gets_the_room_and_no_section_vanishes() {
    assert_eq!(heights([50, 50, 50], 0, 21), [13, 4, 4]);
    assert_eq!(heights([50, 50, 50], 2, 21), [4, 4, 13]);
    assert_eq!(heights([3, 3, 3], 1, 21), [3, 3, 3]);
    assert_eq!(heights([50, 3, 50], 1, 21), [4, 3, 14]);
}
