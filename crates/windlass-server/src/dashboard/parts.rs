//! Parts that pages share: states, times, numbers, tables, buttons.

use std::time::{SystemTime, UNIX_EPOCH};

use maud::{Markup, html};
use serde_json::Value;
use windlass_core::{State, TaskId, Timestamp};

use super::viewer::Viewer;

/// How good or bad something is. It decides the colour; the word and the sign say it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
    Live,
}

impl Tone {
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Live => "live",
        }
    }
}

/// A word with a sign and a colour.
pub(super) fn badge(tone: Tone, sign: &str, word: &str) -> Markup {
    html! { span class={ "state " (tone.class()) } { span aria-hidden="true" { (sign) } (word) } }
}

pub(super) fn state(state: State) -> Markup {
    let (tone, sign) = match state {
        State::Scheduled => (Tone::Plain, "◷"),
        State::Waiting => (Tone::Plain, "⋯"),
        State::Held => (Tone::Warn, "‖"),
        State::Ready => (Tone::Live, "○"),
        State::Running => (Tone::Live, "▶"),
        State::Done => (Tone::Good, "✓"),
        State::Dead => (Tone::Bad, "✕"),
        State::Cancelled => (Tone::Plain, "⊘"),
    };
    badge(tone, sign, state.as_str())
}

/// A time. The script shows it relative to now and in the viewer's zone.
pub(super) fn time(at: Timestamp) -> Markup {
    let text = at.to_string();
    let shown = text.get(..19).unwrap_or(&text).replace('T', " ");
    html! { time datetime=(text) title=(text) { (shown) } }
}

pub(super) fn time_or(at: Option<Timestamp>, otherwise: &str) -> Markup {
    html! { @if let Some(at) = at { (time(at)) } @else { span.soft { (otherwise) } } }
}

/// A count with its thousands apart.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in bytes, with a unit.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = n as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let unit_name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{n} B") } else { format!("{size:.1} {unit_name}") }
}

/// The wall clock of the server.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The first letters of a text.
pub(super) fn cut(text: &str, letters: usize) -> String {
    let mut shown: String = text.chars().take(letters).collect();
    if text.chars().nth(letters).is_some() {
        shown.push('…');
    }
    shown
}

/// A link to a task, by the whole id.
pub(super) fn task_link(viewer: &Viewer, id: TaskId) -> Markup {
    html! { a.mono href=(viewer.at("/tasks", &id.to_string())) { (id) } }
}

/// A link to something with a name, or a dash.
pub(super) fn name_link(viewer: &Viewer, folder: &str, name: Option<&str>) -> Markup {
    html! {
        @if let Some(name) = name { a href=(viewer.at(folder, name)) { (name) } } @else { span.soft { "–" } }
    }
}

/// The heading of a page with its actions.
pub(super) fn top(title: &Markup, actions: &Markup) -> Markup {
    html! { div.top { h1 { (title) } div.actions { (actions) } } }
}

/// A table that scrolls sideways by itself on a narrow screen.
pub(super) fn table(label: &str, head: &Markup, rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table { thead { tr { (head) } } tbody { (rows) } }
        }
    }
}

/// The same for a list that new rows enter at the top: the script never moves what the viewer reads.
pub(super) fn list(label: &str, head: &Markup, rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table { thead { tr { (head) } } tbody data-list { (rows) } }
        }
    }
}

/// What a page says when there is nothing to show: what to type next.
pub(super) fn empty(sentence: &str, command: &str) -> Markup {
    html! {
        div.panel.empty { p { (sentence) } @if !command.is_empty() { (copy(command)) } }
    }
}

/// A command with a button that copies it.
pub(super) fn copy(command: &str) -> Markup {
    html! { div.copy { code { (command) } button type="button" data-copy=(command) { "Copy" } } }
}

/// A button that makes one call of the API.
pub(super) struct Button<'a> {
    /// What it says.
    pub(super) label: &'a str,
    /// The call as the table of calls names it.
    pub(super) call: &'a str,
    /// The path of the call with its names.
    pub(super) path: String,
    /// The body of the call.
    pub(super) body: Value,
    /// What the viewer is asked first. Without a question the call is made at once.
    pub(super) ask: Option<String>,
    /// The page that the viewer is led to afterwards. Without one the viewer stays.
    pub(super) then: Option<&'a str>,
    /// Whether the call is made as a dry run first, and the question says what it would do.
    pub(super) dry: bool,
    pub(super) tone: Tone,
}

impl<'a> Button<'a> {
    pub(super) fn new(label: &'a str, call: &'a str, path: String) -> Self {
        Self {
            label,
            call,
            path,
            body: Value::Object(serde_json::Map::new()),
            ask: None,
            dry: false,
            then: None,
            tone: Tone::Plain,
        }
    }

    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = body;
        self
    }

    pub(super) fn ask(mut self, question: impl Into<String>) -> Self {
        self.ask = Some(question.into());
        self
    }

    pub(super) fn then(mut self, page: &'a str) -> Self {
        self.then = Some(page);
        self
    }

    pub(super) fn dry(mut self) -> Self {
        self.dry = true;
        self
    }

    pub(super) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// The button, if the viewer may make the call.
    pub(super) fn show(&self, viewer: &Viewer) -> Markup {
        let class = match self.tone {
            Tone::Bad => "bad",
            Tone::Live => "main",
            Tone::Plain | Tone::Good | Tone::Warn => "",
        };
        html! {
            @if viewer.may(self.call) {
                button type="button" class=(class) data-call=(method(self.call)) data-url=(viewer.link(&self.path))
                    data-body=(self.body) data-ask=[self.ask.as_deref()] data-then=[self.then.map(|page| viewer.link(page))]
                    data-dry[self.dry] { (self.label) }
            }
        }
    }
}

/// The method of a call.
pub(super) fn method(call: &str) -> &str {
    call.split(' ').next().unwrap_or("POST")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_are_easy_to_read() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1_023, 1_024, 5 << 30].map(bytes), ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]);
    }

    #[test]
    fn markup_in_a_name_is_shown_as_text() {
        let shown = badge(Tone::Plain, "", "<img src=x onerror=alert(1)>").into_string();
        assert!(!shown.contains("<img") && shown.contains("&lt;img"), "{shown}");
    }

    #[test]
    fn a_cut_text_says_that_it_was_cut() {
        assert_eq!((cut("äöü", 3), cut("äöü", 2)), ("äöü".into(), "äö…".into()));
    }
}
