use windlass_core::{JobState, State, store::Depth};
use windlass_server::api::{Overview, WorkerState, WorkerStatusView};

use super::*;
use crate::top::board::{Job, Queue, Worker};

pub fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

pub fn board() -> Board {
    let queue = |text: &str, paused| Queue {
        name: name(text),
        paused,
        depth: Depth { ready: 1_234, running: 7, dead: 3, ..Depth::default() },
    };
    Board {
        overview: Overview {
            pid: 7,
            enqueued: 100,
            worker: Some(WorkerStatusView {
                slots: 50,
                in_flight: 7,
                succeeded: 90,
                failed: 4,
                ..Default::default()
            }),
        },
        snapshot: None,
        queues: vec![queue("default", false), queue("mail", true)],
        jobs: vec![Job {
            name: name("site-7"),
            state: JobState::Active,
            limit: Some(3),
            running: 3,
            ready: 0,
            held: 12,
        }],
        more_jobs: false,
        workers: vec![Worker {
            id: "w1".to_owned(),
            host: "mill".to_owned(),
            slots: 50,
            in_flight: 7,
            state: WorkerState::Live,
            memory_usage: 0.82,
            factor: 0.5,
            reason: "memory".to_owned(),
        }],
    }
}

pub fn view() -> View {
    let mut view = View::new("http://127.0.0.1:7878".to_owned());
    view.saw(board(), Duration::from_secs(1));
    view
}

pub fn task(n: i64) -> TaskLine {
    TaskLine {
        id: TaskId::from_raw(n),
        state: State::Dead,
        kind: name("http"),
        attempt: 2,
        max_attempts: 10,
        error: Some("no luck".to_owned()),
    }
}

#[test]
fn p_asks_for_the_other_state_of_the_selected_queue() {
    let mut view = view();
    assert_eq!(view.press(Key::Pause), Some(Action::SetPaused(name("default"), true)));
    view.press(Key::Down);
    assert_eq!(view.press(Key::Pause), Some(Action::SetPaused(name("mail"), false)));
    view.press(Key::Next);
    assert_eq!(view.press(Key::Pause), None);
    assert!(view.notice.as_deref().unwrap().contains("tab"));
}

#[test]
fn the_selection_stays_inside_of_what_there_is() {
    let mut view = view();
    for _ in 0..5 {
        view.press(Key::Down);
    }
    assert_eq!(view.selected(Section::Queues), 1);
    let mut fewer = board();
    fewer.queues.truncate(1);
    view.saw(fewer, Duration::from_secs(2));
    assert_eq!(view.selected(Section::Queues), 0);
    view.saw(Board::default(), Duration::from_secs(3));
    for key in [Key::Up, Key::Down, Key::Pause, Key::Enter] {
        assert_eq!(view.press(key), None, "{key:?}");
    }
}

#[test]
fn tab_goes_round_and_back() {
    let mut view = view();
    let mut seen = Vec::new();
    for key in [Key::Next, Key::Next, Key::Next, Key::Previous] {
        view.press(key);
        seen.push(view.focus);
    }
    assert_eq!(seen, [Section::Jobs, Section::Workers, Section::Queues, Section::Workers]);
}

#[test]
fn enter_goes_down_to_a_task_and_back_leads_up_again() {
    let mut view = view();
    assert_eq!(view.press(Key::Enter), Some(Action::Refresh));
    assert_eq!(view.press(Key::Enter), None, "nothing is listed yet");
    let tasks = Some(vec![task(1), task(2)]);
    view.screen = Screen::Tasks { of: Of::Queue(name("default")), tasks, selected: 0 };
    view.press(Key::Down);
    assert_eq!(view.press(Key::Enter), Some(Action::Refresh));
    assert!(matches!(&view.screen, Screen::Task { id, .. } if *id == TaskId::from_raw(2)));
    view.press(Key::Back);
    assert!(matches!(&view.screen, Screen::Tasks { selected: 1, .. }), "{:?}", view.screen);
    view.press(Key::Back);
    assert_eq!(view.screen, Screen::Board);
}

#[test]
fn a_task_is_retried_or_cancelled_only_after_a_yes() {
    let mut view = view();
    assert_eq!(view.press(Key::Cancel), None, "on the board there is no task");
    assert_eq!(view.press(Key::Yes), None);
    let tasks = Some(vec![task(1), task(2)]);
    view.screen = Screen::Tasks { of: Of::Queue(name("default")), tasks, selected: 1 };
    assert_eq!(view.press(Key::Yes), None, "nothing was asked");
    assert_eq!(view.press(Key::Cancel), None);
    assert!(view.notice.as_deref().unwrap().starts_with("cancel task 0000000000002? y"), "{:?}", view.notice);
    assert_eq!(view.press(Key::Other), None);
    assert_eq!(view.notice.as_deref(), Some("nothing changed"));
    assert_eq!(view.press(Key::Yes), None, "the question is gone");
    view.press(Key::Retry);
    assert_eq!(view.press(Key::Yes), Some(Action::Act(Act::Retry, TaskId::from_raw(2))));
    view.press(Key::Enter);
    view.press(Key::Cancel);
    assert_eq!(view.press(Key::Quit), None, "q is a no, too");
    view.press(Key::Cancel);
    assert_eq!(view.press(Key::Yes), Some(Action::Act(Act::Cancel, TaskId::from_raw(2))));
}

#[test]
fn any_key_leaves_the_help_and_q_quits_everywhere() {
    let mut view = view();
    view.press(Key::Help);
    assert!(matches!(view.screen, Screen::Help(_)));
    assert_eq!(view.press(Key::Other), None);
    assert_eq!(view.screen, Screen::Board);
    view.press(Key::Help);
    assert_eq!(view.press(Key::Quit), Some(Action::Quit));
}

#[test]
fn a_look_after_a_failure_says_that_the_server_is_back() {
    let mut view = view();
    view.lost = Some("connection refused".to_owned());
    view.saw(board(), Duration::from_secs(2));
    assert_eq!(view.lost, None);
    assert_eq!(view.rates.done.now(), Some(0.0));
}
