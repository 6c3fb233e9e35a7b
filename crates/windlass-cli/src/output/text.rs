//! Pieces of text for people.

use jiff::tz::TimeZone;
use windlass_core::{State, Timestamp, text::shown, why::human};

use super::{Colour, Output};
use crate::duration;

/// Text without line breaks, invisible characters and anything that a terminal would obey: names and
/// errors can come from an attacker.
pub fn clean(text: &str) -> String {
    shown(text).into_owned()
}

/// At most `width` characters, with a mark where text was cut.
pub fn cut(text: &str, width: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= width {
        return text;
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A number with separators.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 task", "2 tasks".
pub fn tasks(number: u64) -> String {
    format!("{} task{}", count(number), if number == 1 { "" } else { "s" })
}

/// A size with its unit.
pub fn bytes(size: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (unit, scale) in units {
        if size >= scale {
            return match size % scale {
                0 => format!("{} {unit}", size / scale),
                _ => format!("{:.1} {unit}", size as f64 / scale as f64),
            };
        }
    }
    format!("{size} bytes")
}

/// A time: local on a terminal, UTC elsewhere.
pub fn time(out: Output, at: Timestamp) -> String {
    if !out.is_terminal() {
        return at.to_string();
    }
    match jiff::Timestamp::from_millisecond(at.as_ms()) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => at.to_string(),
    }
}

/// How long ago.
pub fn ago(at: Timestamp) -> String {
    format!("{} ago", human(duration::now().since(at)))
}

/// A state in its colour.
pub fn state(out: Output, state: State) -> String {
    let colour = match state {
        State::Done => Colour::Green,
        State::Dead => Colour::Red,
        State::Running => Colour::Cyan,
        State::Held | State::Waiting | State::Cancelled => Colour::Yellow,
        State::Ready | State::Scheduled => Colour::Dim,
    };
    out.paint(colour, state.as_str())
}

/// A span of time in a short form; below a second it is exact to a tenth of a millisecond.
pub fn elapsed(duration: std::time::Duration) -> String {
    if duration.as_millis() < 1_000 {
        return format!("{:.1} ms", duration.as_secs_f64() * 1_000.0);
    }
    human(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaned_text_cannot_move_the_cursor_or_start_a_line() {
        assert_eq!(clean("a\x1b[2Jb\nc\0"), r"a\u{1b}[2Jb c\u{0}");
    }

    #[test]
    fn cut_text_is_marked_and_never_longer_than_asked() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("a longer one", 6), "a lon…");
    }

    #[test]
    fn numbers_and_sizes_are_readable() {
        assert_eq!(
            (count(7), count(1_234), count(1_234_567)),
            ("7".into(), "1,234".into(), "1,234,567".into())
        );
        assert_eq!((tasks(1), tasks(1_000)), ("1 task".into(), "1,000 tasks".into()));
        assert_eq!(
            (bytes(12), bytes(1 << 30), bytes(1_536)),
            ("12 bytes".into(), "1 GiB".into(), "1.5 KiB".into())
        );
    }
}
