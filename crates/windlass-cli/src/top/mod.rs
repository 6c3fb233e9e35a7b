//! `windlass top`: shows queues, jobs, workers and rates of a running server in a terminal.
//!
//! ```text
//! keys ─► view (what is looked at) ─► lines (what is shown) ─► terminal
//!            ▲
//! server ─► fetch, every --interval and after a key that asks for it
//! ```

mod board;
mod fetch;
mod lines;
mod rates;
mod view;

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use clap::Args;
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    text::{Line, Text},
    widgets::Paragraph,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::MissedTickBehavior,
};

use self::{
    board::{Board, TaskLine},
    view::{Action, Key, Of, Screen, View},
};
use windlass_core::text::has_unsafe;

use crate::{
    backend::{connect::Choice, remote::Remote},
    duration,
    failure::{Exit, Failure},
    output::text::clean,
    session::Session,
};

/// Keys that may wait; a user does not type faster.
const KEYS_MAX: usize = 64;
/// Answers that may wait.
const NEWS_MAX: usize = 16;
/// How often the thread that reads keys checks whether the view has ended.
const KEYS_LOOK: Duration = Duration::from_millis(100);

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// How often to ask the server, such as 1s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "1s")]
    interval: Duration,
}

/// An event of the terminal.
enum Typed {
    Key(Key),
    /// Ctrl-C.
    Interrupt,
    /// The size has changed, or another event needs a new drawing.
    Redraw,
}

/// An answer of the server.
enum News {
    Board(Result<Box<Board>, String>),
    Tasks(Of, Result<Vec<TaskLine>, String>),
    Task(windlass_core::TaskId, Result<Vec<(String, String)>, String>),
    Changed(Result<String, String>),
}

/// Shows the view until the user quits.
pub async fn run(session: &Session, args: &TopArgs) -> anyhow::Result<Exit> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("top needs a terminal, and standard output is not one")
            .hint("for scripts: `windlass queues ls --json`, `jobs ls`, `workers ls`")
            .into());
    }
    if args.interval.is_zero() {
        return Err(Failure::usage("--interval must be longer than zero").into());
    }
    let settings = &session.settings;
    let choice = Choice::of(settings)?;
    // Fails at once, with one line, if no server is found.
    let Some(server) = choice.server_to_watch(settings).await? else {
        return Err(choice.no_server(settings).into());
    };
    // This also restores the terminal after a panic.
    let terminal = ratatui::try_init()?;
    let ended = watch(server, args.interval, terminal).await;
    ratatui::restore();
    ended
}

async fn watch(server: Remote, interval: Duration, mut terminal: DefaultTerminal) -> anyhow::Result<Exit> {
    use crate::backend::Backend as _;

    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut keys = keys()?;
    let (news, mut heard) = mpsc::channel(NEWS_MAX);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (started, mut view) = (Instant::now(), View::new(server.target().await));
    let mut asking = None;
    loop {
        draw(&mut terminal, &view)?;
        tokio::select! {
            _ = interrupt.recv() => return Ok(Exit::Interrupted),
            _ = terminate.recv() => return Ok(Exit::Done),
            typed = keys.recv() => match typed {
                None => return Ok(Exit::Done),
                Some(Typed::Interrupt) => return Ok(Exit::Interrupted),
                Some(Typed::Redraw) => {}
                Some(Typed::Key(key)) => match view.press(key) {
                    Some(Action::Quit) => return Ok(Exit::Done),
                    Some(Action::Refresh) => drop(ask(&server, &view, &news)),
                    Some(Action::SetPaused(queue, paused)) => {
                        let (server, news) = (server.clone(), news.clone());
                        tokio::spawn(async move {
                            let changed = fetch::set_paused(&server, &queue, paused).await;
                            let _ = news.send(News::Changed(changed)).await;
                            let _ = news.send(News::Board(fetch::board(&server).await.map(Box::new))).await;
                        });
                    }
                    Some(Action::Act(act, id)) => {
                        let (server, news, screen) = (server.clone(), news.clone(), view.screen.clone());
                        tokio::spawn(async move {
                            let _ = news.send(News::Changed(fetch::act(&server, act, id).await)).await;
                            look(&server, screen, &news).await;
                        });
                    }
                    None => {}
                },
            },
            told = heard.recv() => if let Some(told) = told {
                note(&mut view, told, started.elapsed());
            },
            // One request at a time: a slow server is asked less often.
            _ = ticks.tick() => if asking.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) {
                asking = Some(ask(&server, &view, &news));
            },
        }
    }
}

/// Asks for the board, and for the other data of the screen.
fn ask(server: &Remote, view: &View, news: &mpsc::Sender<News>) -> tokio::task::JoinHandle<()> {
    let (server, news, screen) = (server.clone(), news.clone(), view.screen.clone());
    tokio::spawn(async move { look(&server, screen, &news).await })
}

async fn look(server: &Remote, screen: Screen, news: &mpsc::Sender<News>) {
    // A view that has ended no longer receives.
    let _ = news.send(News::Board(fetch::board(server).await.map(Box::new))).await;
    let more = match screen {
        Screen::Tasks { of, .. } => {
            let tasks = fetch::tasks(server, &of).await;
            News::Tasks(of, tasks)
        }
        Screen::Task { id, .. } => News::Task(id, fetch::task(server, id).await),
        Screen::Board | Screen::Help(_) => return,
    };
    let _ = news.send(more).await;
}

/// Puts an answer of the server into the view. An answer for a screen that the user has left is dropped.
fn note(view: &mut View, news: News, at: Duration) {
    match news {
        News::Board(Ok(board)) => view.saw(*board, at),
        News::Board(Err(why)) => view.lost = Some(why),
        News::Changed(Ok(text) | Err(text)) => view.notice = Some(text),
        News::Tasks(of, answer) => {
            if let Screen::Tasks { of: shown, tasks, .. } = &mut view.screen
                && *shown == of
            {
                match answer {
                    Ok(found) => *tasks = Some(found),
                    Err(why) => view.notice = Some(why),
                }
            }
        }
        News::Task(id, answer) => {
            if let Screen::Task { id: shown, lines, .. } = &mut view.screen
                && *shown == id
            {
                match answer {
                    Ok(found) => *lines = Some(found),
                    Err(why) => view.notice = Some(why),
                }
            }
        }
    }
}

fn draw(terminal: &mut DefaultTerminal, view: &View) -> io::Result<()> {
    terminal.draw(|frame| {
        let area = frame.area();
        let lines = lines::lines(view, area.width.into(), area.height.into());
        frame.render_widget(Paragraph::new(Text::from(safe_lines(lines))), area);
    })?;
    Ok(())
}

/// The lines as a terminal may get them. They are cleaned again here, in case a line holds a text that
/// was not.
fn safe_lines(mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
        if has_unsafe(&span.content) {
            span.content = clean(&span.content).into();
        }
    }
    lines
}

/// Reads keys on a thread of its own, since reading a terminal blocks. The thread ends when the receiver
/// is dropped.
fn keys() -> io::Result<mpsc::Receiver<Typed>> {
    let (typed, keys) = mpsc::channel(KEYS_MAX);
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while !typed.is_closed() {
            let read = match event::poll(KEYS_LOOK) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let meant = match read {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => Some(meaning(key)),
                Ok(Event::Resize(..)) => Some(Typed::Redraw),
                Ok(_) => None,
                // The terminal is gone.
                Err(_) => return,
            };
            if let Some(meant) = meant
                && typed.blocking_send(meant).is_err()
            {
                return;
            }
        }
    })?;
    Ok(keys)
}

fn meaning(key: KeyEvent) -> Typed {
    // While the view is up, the terminal sends Ctrl-C as a key and not as a signal.
    if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        return Typed::Interrupt;
    }
    let key = match key.code {
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Tab | KeyCode::Right => Key::Next,
        KeyCode::BackTab | KeyCode::Left => Key::Previous,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc | KeyCode::Backspace => Key::Back,
        KeyCode::Char('p') => Key::Pause,
        KeyCode::Char('r') => Key::Retry,
        KeyCode::Char('c') => Key::Cancel,
        KeyCode::Char('y') => Key::Yes,
        KeyCode::Char('?') => Key::Help,
        KeyCode::Char('q') => Key::Quit,
        _ => Key::Other,
    };
    Typed::Key(key)
}

#[cfg(test)]
mod tests {
    use windlass_core::text::is_unsafe;

    use super::*;

    #[test]
    fn no_unsafe_character_is_drawn() {
        for letter in ('\0'..=char::MAX).filter(|letter| is_unsafe(*letter)) {
            let drawn = safe_lines(vec![Line::from(format!("queue a{letter}b"))]);
            assert!(!drawn.iter().any(|line| has_unsafe(&line.to_string())), "{letter:?}");
        }
    }
}
