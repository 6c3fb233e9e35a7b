//! What the user looks at, and what a key changes. The view knows no terminal and no network: it takes
//! keys and answers, and returns actions.

use std::time::Duration;

use windlass_core::{Name, TaskId};

use super::{
    board::{Board, TaskLine},
    rates::Rate,
};

/// A section of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Queues,
    Jobs,
    Workers,
}

impl Section {
    /// All of them, from top to bottom.
    pub const ALL: [Self; 3] = [Self::Queues, Self::Jobs, Self::Workers];

    fn next(self) -> Self {
        match self {
            Self::Queues => Self::Jobs,
            Self::Jobs => Self::Workers,
            Self::Workers => Self::Queues,
        }
    }
}

/// A key that the view knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Next,
    Previous,
    Enter,
    Back,
    Pause,
    Retry,
    Cancel,
    Yes,
    Help,
    Quit,
    /// A key without a meaning; it leaves the help.
    Other,
}

/// What a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Quit,
    SetPaused(Name, bool),
    /// Do something to a task; the user has confirmed it.
    Act(Act, TaskId),
    /// Fetch what the screen shows, now.
    Refresh,
}

/// An action on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// New attempts for a dead task; a done or cancelled task is repeated as a new one.
    Retry,
    Cancel,
}

impl Act {
    /// The name of the action.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }
}

/// Which tasks a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    Queue(Name),
    Job(Name),
}

/// The screen that fills the terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Screen {
    Board,
    Tasks { of: Of, tasks: Option<Vec<TaskLine>>, selected: usize },
    Task { id: TaskId, lines: Option<Vec<(String, String)>>, scroll: usize, from: Box<Screen> },
    Help(Box<Screen>),
}

/// Rates of the fleet; of the server's process, if the server is of a version that knows no more.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    pub enqueued: Rate,
    pub done: Rate,
    pub failed: Rate,
}

/// The whole view.
#[derive(Debug, Clone)]
pub struct View {
    /// The server's address.
    pub place: String,
    pub screen: Screen,
    pub focus: Section,
    /// The selected row of each section.
    selected: [usize; 3],
    /// The last board that was received.
    pub board: Option<Board>,
    pub rates: Rates,
    /// Why the server does not answer, while it does not.
    pub lost: Option<String>,
    /// The result of the last key.
    pub notice: Option<String>,
    /// The action that the user is asked to confirm.
    asked: Option<(Act, TaskId)>,
}

impl View {
    pub fn new(place: String) -> Self {
        Self {
            place,
            screen: Screen::Board,
            focus: Section::Queues,
            selected: [0; 3],
            board: None,
            rates: Rates::default(),
            lost: None,
            notice: None,
            asked: None,
        }
    }

    /// Takes a new board; `at` is the time since the start.
    pub fn saw(&mut self, board: Board, at: Duration) {
        if let Some(snapshot) = &board.snapshot {
            // A server shows the same snapshot for two seconds.
            let last = self.board.as_ref().and_then(|board| board.snapshot.as_ref());
            if last.is_none_or(|last| last.at != snapshot.at) {
                let flow = &snapshot.total;
                flow.in_per_s.into_iter().for_each(|rate| self.rates.enqueued.push(rate));
                flow.done_per_s.into_iter().for_each(|rate| self.rates.done.push(rate));
                flow.failed_per_s.into_iter().for_each(|rate| self.rates.failed.push(rate));
            }
        } else {
            let worker = board.overview.worker.clone().unwrap_or_default();
            self.rates.enqueued.note(board.overview.enqueued, at);
            self.rates.done.note(worker.succeeded, at);
            self.rates.failed.note(worker.failed, at);
        }
        self.board = Some(board);
        self.lost = None;
    }

    /// The selected row of a section; never beyond its last row.
    pub fn selected(&self, section: Section) -> usize {
        let row = self.selected.get(section as usize).copied().unwrap_or(0);
        row.min(self.rows(section).saturating_sub(1))
    }

    fn rows(&self, section: Section) -> usize {
        let Some(board) = &self.board else { return 0 };
        match section {
            Section::Queues => board.queues.len(),
            Section::Jobs => board.jobs.len(),
            Section::Workers => board.workers.len(),
        }
    }

    /// Takes a key.
    pub fn press(&mut self, key: Key) -> Option<Action> {
        self.notice = None;
        if let Some((act, id)) = self.asked.take() {
            if key == Key::Yes {
                return Some(Action::Act(act, id));
            }
            self.notice = Some("nothing changed".to_owned());
            return None;
        }
        match (key, std::mem::replace(&mut self.screen, Screen::Board)) {
            (Key::Quit, screen) => {
                self.screen = screen;
                return Some(Action::Quit);
            }
            // Any key leaves the help.
            (_, Screen::Help(from)) => self.screen = *from,
            (Key::Help, screen) => self.screen = Screen::Help(Box::new(screen)),
            (_, Screen::Board) => return self.press_on_board(key),
            (_, Screen::Tasks { of, tasks, selected }) => {
                return self.press_on_tasks(key, of, tasks, selected);
            }
            (_, Screen::Task { id, lines, scroll, from }) => {
                let scroll = match key {
                    Key::Up => scroll.saturating_sub(1),
                    Key::Down => (scroll + 1).min(lines.as_ref().map_or(0, Vec::len).saturating_sub(1)),
                    _ => scroll,
                };
                self.ask(key, Some(id));
                self.screen = match key {
                    Key::Back => *from,
                    _ => Screen::Task { id, lines, scroll, from },
                };
            }
        }
        None
    }

    fn press_on_board(&mut self, key: Key) -> Option<Action> {
        let row = self.selected(self.focus);
        match key {
            Key::Up => self.select(row.saturating_sub(1)),
            Key::Down => self.select(row + 1),
            Key::Next => self.focus = self.focus.next(),
            Key::Previous => self.focus = self.focus.next().next(),
            Key::Pause => return self.pause(row),
            Key::Enter => {
                let of = self.of(row)?;
                self.screen = Screen::Tasks { of, tasks: None, selected: 0 };
                return Some(Action::Refresh);
            }
            Key::Retry | Key::Cancel => {
                self.notice =
                    Some("r and c are for a task: enter lists those of a queue or a job".to_owned());
            }
            Key::Back | Key::Help | Key::Quit | Key::Yes | Key::Other => {}
        }
        None
    }

    /// Asks the user to confirm the action of a key on a task.
    fn ask(&mut self, key: Key, task: Option<TaskId>) {
        let act = match key {
            Key::Retry => Act::Retry,
            Key::Cancel => Act::Cancel,
            _ => return,
        };
        let Some(id) = task else { return };
        self.notice = Some(format!("{} task {id}? y does it, any other key does not", act.verb()));
        self.asked = Some((act, id));
    }

    fn select(&mut self, row: usize) {
        let row = row.min(self.rows(self.focus).saturating_sub(1));
        if let Some(selected) = self.selected.get_mut(self.focus as usize) {
            *selected = row;
        }
    }

    fn pause(&mut self, row: usize) -> Option<Action> {
        let queue = match self.focus {
            Section::Queues => self.board.as_ref()?.queues.get(row)?,
            Section::Jobs | Section::Workers => {
                self.notice = Some("p pauses a queue: move to the queues with tab".to_owned());
                return None;
            }
        };
        Some(Action::SetPaused(queue.name.clone(), !queue.paused))
    }

    fn of(&mut self, row: usize) -> Option<Of> {
        let board = self.board.as_ref()?;
        match self.focus {
            Section::Queues => board.queues.get(row).map(|queue| Of::Queue(queue.name.clone())),
            Section::Jobs => board.jobs.get(row).map(|job| Of::Job(job.name.clone())),
            Section::Workers => {
                self.notice = Some("enter lists the tasks of a queue or a job".to_owned());
                None
            }
        }
    }

    fn press_on_tasks(
        &mut self,
        key: Key,
        of: Of,
        tasks: Option<Vec<TaskLine>>,
        selected: usize,
    ) -> Option<Action> {
        let last = tasks.as_ref().map_or(0, Vec::len).saturating_sub(1);
        let row = selected.min(last);
        let open = tasks.as_ref().and_then(|tasks| tasks.get(row)).map(|task| task.id);
        let row = match key {
            Key::Up => row.saturating_sub(1),
            Key::Down => (row + 1).min(last),
            _ => row,
        };
        let screen = Screen::Tasks { of, tasks, selected: row };
        self.ask(key, open);
        match (key, open) {
            (Key::Back, _) => self.screen = Screen::Board,
            (Key::Enter, Some(id)) => {
                self.screen = Screen::Task { id, lines: None, scroll: 0, from: Box::new(screen) };
                return Some(Action::Refresh);
            }
            _ => self.screen = screen,
        }
        None
    }
}

#[cfg(test)]
pub mod tests;
