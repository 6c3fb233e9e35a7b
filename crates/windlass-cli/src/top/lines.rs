//! Turns the view into the lines on the terminal: a pure function of the view and the size.

use std::time::Duration;

use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use windlass_core::{State, why::human};
use windlass_server::api::{Flow, WorkerState};

use super::{
    board::{Board, Job, Queue, TaskLine, Worker},
    view::{Of, Screen, Section, View},
};
use crate::output::text::{clean, count, cut};

/// Fewest rows of a section, title included.
const SECTION_MIN: usize = 4;
/// From this width on a queue's line says how it moves, in so many characters more.
const WIDE: usize = 124;
const FLOW: usize = 51;
/// Least and most characters of a sparkline.
const SPARK: (usize, usize) = (6, 30);

/// The lines for a terminal of this size.
pub fn lines(view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(view, width), figures(view, width)];
    lines.extend(outlook(view, width));
    let room = height.saturating_sub(lines.len() + 1);
    let body = match (&view.screen, &view.board) {
        (Screen::Help(_), _) => help(),
        (Screen::Tasks { of, tasks, selected }, _) => list(of, tasks.as_deref(), *selected, width, room),
        (Screen::Task { id, lines, scroll, .. }, _) => {
            detail(&id.to_string(), lines.as_deref(), *scroll, width, room)
        }
        (Screen::Board, Some(board)) => sections(view, board, width, room),
        (Screen::Board, None) => vec![Line::from(" asking the server …")],
    };
    lines.extend(body.into_iter().take(room));
    lines.resize(height.saturating_sub(1), Line::default());
    lines.push(footer(view, width));
    lines.truncate(height);
    lines
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn title(view: &View, width: usize) -> Line<'static> {
    match &view.lost {
        None => Line::from(vec![
            Span::styled(" windlass top ", bold()),
            Span::raw(cut(&view.place, width.saturating_sub(15))),
        ]),
        Some(why) => {
            let text = format!(" SERVER GONE: {}; trying again …", clean(why));
            Line::styled(pad(&text, width), Style::new().fg(Color::White).bg(Color::Red))
        }
    }
}

fn figures(view: &View, width: usize) -> Line<'static> {
    let (in_flight, slots) = view.board.as_ref().map_or((0, 0), busy);
    // Three sparklines of ten characters with their names, and the slots at the right.
    let spark = (width.saturating_sub(64) / 3).clamp(SPARK.0, SPARK.1);
    let mut spans = vec![Span::raw(" ")];
    for (name, rate, colour) in [
        ("in", &view.rates.enqueued, Color::Cyan),
        ("done", &view.rates.done, Color::Green),
        ("failed", &view.rates.failed, Color::Red),
    ] {
        let now = rate.now().map_or("-".to_owned(), |now| format!("{now:.1}"));
        spans.push(Span::raw(format!("{name} {now:>6}/s ")));
        spans.push(Span::styled(rate.line(spark), Style::new().fg(colour)));
        spans.push(Span::raw("  "));
    }
    spans.push(Span::raw(format!("slots {in_flight}/{slots}")));
    Line::from(spans)
}

/// How many slots are busy, and how many there are: of the fleet, else of the server's own worker.
fn busy(board: &Board) -> (u64, u64) {
    if let Some(snapshot) = &board.snapshot {
        return (snapshot.workers.running, snapshot.workers.slots);
    }
    let worker = board.overview.worker.clone().unwrap_or_default();
    (worker.in_flight.into(), worker.slots.into())
}

/// When the backlog is empty, and what needs attention most.
fn outlook(view: &View, width: usize) -> Vec<Line<'static>> {
    let Some(snapshot) = view.board.as_ref().and_then(|board| board.snapshot.as_ref()) else {
        return Vec::new();
    };
    let flow = &snapshot.total;
    let text = format!(" oldest {} · {}", oldest(flow), flow.forecast.sentence);
    let mut lines = vec![Line::raw(cut(&text, width))];
    if let Some(first) = snapshot.attention.first() {
        let more = match snapshot.attention.len() {
            1 => String::new(),
            n => format!(" (+{} more)", n - 1),
        };
        let sentence = cut(&first.sentence, width.saturating_sub(3 + more.len()));
        lines.push(Line::styled(format!(" ! {sentence}{more}"), Style::new().fg(Color::Yellow)));
    }
    lines
}

fn oldest(flow: &Flow) -> String {
    flow.oldest_ready_ms.map_or_else(|| "-".to_owned(), |ms| human(Duration::from_millis(ms)))
}

fn footer(view: &View, width: usize) -> Line<'static> {
    if let Some(notice) = &view.notice {
        return Line::styled(format!(" {}", cut(notice, width.saturating_sub(1))), bold());
    }
    let keys = match view.screen {
        Screen::Board => " ↑↓ move  tab section  enter tasks  p pause/resume queue  ? help  q quit",
        Screen::Tasks { .. } => " ↑↓ move  enter look into task  r retry  c cancel  esc back  ? help  q quit",
        Screen::Task { .. } => " ↑↓ scroll  r retry  c cancel  esc back  ? help  q quit",
        Screen::Help(_) => " any key goes back  q quits",
    };
    Line::styled(keys, dim())
}

/// The three sections, one below the other. Each gets its fewest lines. The section in focus gets as many
/// of the rest as it can use; the others share what is left.
fn sections(view: &View, board: &Board, width: usize, room: usize) -> Vec<Line<'static>> {
    let wanted = Section::ALL.map(|section| {
        let rows = match section {
            Section::Queues => board.queues.len(),
            Section::Jobs => board.jobs.len(),
            Section::Workers => board.workers.len(),
        };
        rows.max(1) + 2
    });
    let heights = heights(wanted, view.focus as usize, room);
    let mut lines = Vec::new();
    for (section, height) in Section::ALL.into_iter().zip(heights) {
        let (head, rows) = table(section, board, width);
        let mut block = vec![
            headline(section, view.focus == section, rows.len(), board, width),
            Line::styled(head, dim()),
        ];
        let selected = view.selected(section);
        let room = height.saturating_sub(block.len());
        let first = (selected + 1).saturating_sub(room.max(1));
        let is_empty = rows.is_empty();
        for (row, (text, style)) in rows.into_iter().enumerate().skip(first) {
            let is_selected = row == selected && view.focus == section;
            let style = if is_selected { style.add_modifier(Modifier::REVERSED) } else { style };
            let mark = if is_selected { ">" } else { " " };
            block.push(Line::styled(pad(&format!("{mark}{text}"), width), style));
        }
        if is_empty {
            block.push(Line::styled(format!("  {}", none(section)), dim()));
        }
        block.resize(height, Line::default());
        lines.append(&mut block);
    }
    lines
}

/// How many lines each section gets.
fn heights(wanted: [usize; 3], focus: usize, room: usize) -> [usize; 3] {
    let mut heights = wanted.map(|wanted| wanted.min(SECTION_MIN));
    let order = [focus, (focus + 1) % 3, (focus + 2) % 3];
    let mut left = room.saturating_sub(heights.iter().sum());
    for place in order {
        if let (Some(height), Some(wanted)) = (heights.get_mut(place), wanted.get(place)) {
            let more = left.min(wanted.saturating_sub(*height));
            *height += more;
            left -= more;
        }
    }
    heights
}

fn headline(section: Section, has_focus: bool, rows: usize, board: &Board, width: usize) -> Line<'static> {
    let name = match section {
        Section::Queues => "QUEUES",
        Section::Jobs => "JOBS",
        Section::Workers => "WORKERS",
    };
    let more = if section == Section::Jobs && board.more_jobs { "+" } else { "" };
    let text = format!("── {name} {}{more} ", count(rows as u64));
    let line = format!("{text}{}", "─".repeat(width.saturating_sub(text.chars().count())));
    Line::styled(line, if has_focus { bold() } else { dim() })
}

fn none(section: Section) -> &'static str {
    match section {
        Section::Queues => "no queues yet: the first task makes one",
        Section::Jobs => "no jobs",
        Section::Workers => "no workers: start one with `windlass up`",
    }
}

type Row = (String, Style);

/// The title of a section and its rows.
fn table(section: Section, board: &Board, width: usize) -> (String, Vec<Row>) {
    match section {
        Section::Queues => {
            let is_wide = width >= WIDE && board.snapshot.is_some();
            let name = width.saturating_sub(if is_wide { 59 + FLOW } else { 59 }).clamp(12, 60);
            let head = format!(
                "  {:name$} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} ",
                "queue", "ready", "running", "sched", "waiting", "held", "dead"
            );
            let flow_head =
                format!("{:>8} {:>8} {:>8} {:>12}  {:10}", "in/s", "done/s", "failed/s", "oldest", "clears");
            let head = if is_wide { head + &flow_head } else { head };
            let shown = |row: &Queue| queue(row, name, board.flow(&row.name).filter(|_| is_wide));
            (head, board.queues.iter().map(shown).collect())
        }
        Section::Jobs => {
            let name = width.saturating_sub(50).clamp(12, 60);
            let head = format!(
                "  {:name$} {:>13} {:>9} {:>9}  {}",
                "job", "running/limit", "ready", "held", "state"
            );
            (head, board.jobs.iter().map(|row| job(row, name)).collect())
        }
        Section::Workers => {
            let host = width.saturating_sub(64).clamp(10, 40);
            let head = format!(
                "  {:6} {:host$} {:>11} {:>5} {:>6}  {:9} {}",
                "id", "host", "run/slots", "mem", "factor", "state", "pressure"
            );
            (head, board.workers.iter().map(|row| worker(row, host)).collect())
        }
    }
}

fn queue(queue: &Queue, name: usize, flow: Option<&Flow>) -> Row {
    let depth = &queue.depth;
    let shown = if queue.paused {
        // A word shows the state, not only a colour.
        format!("{} PAUSED", cut(queue.name.as_str(), name.saturating_sub(7)))
    } else {
        cut(queue.name.as_str(), name)
    };
    let states = [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];
    let [ready, running, scheduled, waiting, held, dead] = states.map(|state| depth.count(state).to_string());
    let moves = flow.map(moves).unwrap_or_default();
    let text = format!(
        " {shown:name$} {ready:>8} {running:>8} {scheduled:>8} {waiting:>8} {held:>8} {dead:>7} {moves}"
    );
    let style = match (queue.paused, depth.dead) {
        (true, _) => Style::new().fg(Color::Yellow),
        (false, 1..) => Style::new().fg(Color::Red),
        (false, 0) => Style::new(),
    };
    (text, style)
}

/// The columns of a wide terminal: how a queue moves.
fn moves(flow: &Flow) -> String {
    let rate = |per_s: Option<f64>| per_s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
    let clears = match (flow.forecast.kind.as_str(), flow.forecast.in_ms) {
        (_, Some(ms)) => human(Duration::from_millis(ms)),
        ("not_at_this_rate", _) => "never so".to_owned(),
        ("too_little_known", _) => "?".to_owned(),
        _ => "-".to_owned(),
    };
    format!(
        "{:>8} {:>8} {:>8} {:>12}  {:10}",
        rate(flow.in_per_s),
        rate(flow.done_per_s),
        rate(flow.failed_per_s),
        oldest(flow),
        cut(&clears, 10)
    )
}

fn job(job: &Job, name: usize) -> Row {
    let limit = job.limit.map_or("∞".to_owned(), |limit| limit.to_string());
    let text = format!(
        " {:name$} {:>13} {:>9} {:>9}  {}",
        cut(job.name.as_str(), name),
        format!("{}/{limit}", job.running),
        count(job.ready),
        count(job.held),
        job.state.as_str()
    );
    let is_full = job.limit.is_some_and(|limit| job.running >= u64::from(limit)) && job.held > 0;
    (text, if is_full { Style::new().fg(Color::Yellow) } else { Style::new() })
}

fn worker(worker: &Worker, host: usize) -> Row {
    let (state, style) = match worker.state {
        WorkerState::Live => ("live", Style::new()),
        WorkerState::Draining => ("draining", Style::new().fg(Color::Yellow)),
        WorkerState::Stale => ("stale", Style::new().fg(Color::Red)),
        WorkerState::Gone => ("gone", dim()),
    };
    let share = |share: f64| format!("{:.0}%", share * 100.0);
    let text = format!(
        " {:6} {:host$} {:>11} {:>5} {:>6}  {state:9} {}",
        cut(&worker.id, 6),
        cut(&worker.host, host),
        format!("{}/{}", worker.in_flight, worker.slots),
        share(worker.memory_usage),
        share(worker.factor),
        clean(&worker.reason)
    );
    let is_slowed = worker.state == WorkerState::Live && worker.factor < 1.0;
    (text, if is_slowed { Style::new().fg(Color::Yellow) } else { style })
}

fn list(
    of: &Of,
    tasks: Option<&[TaskLine]>,
    selected: usize,
    width: usize,
    room: usize,
) -> Vec<Line<'static>> {
    let of = match of {
        Of::Queue(name) => format!("queue {}", clean(name.as_str())),
        Of::Job(name) => format!("job {}", clean(name.as_str())),
    };
    let mut lines = vec![Line::styled(format!("── newest tasks of {of} "), bold())];
    lines.push(Line::styled(
        format!("  {:13} {:9} {:16} {:>8}  {}", "id", "state", "kind", "attempt", "error"),
        dim(),
    ));
    let Some(tasks) = tasks else {
        lines.push(Line::from("  asking the server …"));
        return lines;
    };
    if tasks.is_empty() {
        lines.push(Line::styled("  no tasks", dim()));
    }
    let room = room.saturating_sub(lines.len()).max(1);
    let selected = selected.min(tasks.len().saturating_sub(1));
    for (row, task) in tasks.iter().enumerate().skip((selected + 1).saturating_sub(room)) {
        let mark = if row == selected { ">" } else { " " };
        let text = format!(
            "{mark} {:13} {:9} {:16} {:>8}  {}",
            task.id.to_string(),
            task.state.as_str(),
            cut(task.kind.as_str(), 16),
            format!("{}/{}", task.attempt, task.max_attempts),
            task.error.as_deref().map(clean).unwrap_or_default()
        );
        let style = state_style(task.state);
        let style = if row == selected { style.add_modifier(Modifier::REVERSED) } else { style };
        lines.push(Line::styled(pad(&text, width), style));
    }
    lines
}

fn state_style(state: State) -> Style {
    match state {
        State::Dead => Style::new().fg(Color::Red),
        State::Running => Style::new().fg(Color::Cyan),
        State::Held | State::Waiting | State::Cancelled => Style::new().fg(Color::Yellow),
        State::Done | State::Ready | State::Scheduled => Style::new(),
    }
}

fn detail(
    id: &str,
    fields: Option<&[(String, String)]>,
    scroll: usize,
    width: usize,
    room: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(format!("── task {id} "), bold())];
    let Some(fields) = fields else {
        lines.push(Line::from("  asking the server …"));
        return lines;
    };
    for (name, value) in fields.iter().skip(scroll).take(room) {
        lines.push(Line::from(vec![
            Span::styled(format!("  {name:12} "), dim()),
            Span::raw(cut(value, width.saturating_sub(15))),
        ]));
    }
    lines
}

fn help() -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("── help ", bold())];
    for (key, what) in [
        ("↑ ↓ (k j)", "move in a section or a list"),
        ("tab ← →", "the next or previous section"),
        ("enter", "the newest tasks of the queue or job, then one task and its why"),
        ("esc", "back"),
        ("r", "retry the task; one that is done or cancelled as a new one"),
        ("c", "cancel the task; one that runs is asked to end"),
        ("y", "yes, when r or c ask; any other key is a no"),
        ("p", "pause the selected queue, or resume it; what runs goes on"),
        ("q, ctrl-c", "quit"),
        ("", ""),
        ("in", "tasks that came in through this server, a second"),
        ("done, failed", "attempts that ended in its own worker, a second"),
        ("slots", "handlers that run in its own worker, and its slots"),
        ("held", "tasks that wait for room in their job, or for a live worker"),
        ("factor", "the share of its slots that a worker allows itself"),
    ] {
        lines.push(Line::from(format!("  {key:14} {what}")));
    }
    lines
}

/// Text of exactly this width.
fn pad(text: &str, width: usize) -> String {
    format!("{:width$}", cut(text, width))
}

#[cfg(test)]
mod tests;
