//! Log lines for events that may come in floods: the first ten per minute and event, then one line with the
//! count (SILENT-NEVER).

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Lines per window before only the count is kept.
const LINES: u64 = 10;
/// The window.
const WINDOW: Duration = Duration::from_mins(1);

/// Counts one sort of event.
#[derive(Debug, Default)]
pub struct Quota {
    window: Mutex<Option<(Instant, u64)>>,
}

/// What to log for an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line of its own.
    Own,
    /// A line of its own, after one with the number of events of the last window that had none.
    OwnAfter(u64),
    /// No line: the event is only counted.
    None,
}

impl Quota {
    /// Counts an event at a time.
    pub fn event(&self, now: Instant) -> Line {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *window {
            Some((start, events)) if now.duration_since(*start) < WINDOW => {
                *events += 1;
                if *events <= LINES { Line::Own } else { Line::None }
            }
            other => {
                let unwritten = other.map_or(0, |(_, events)| events.saturating_sub(LINES));
                *other = Some((now, 1));
                if unwritten > 0 { Line::OwnAfter(unwritten) } else { Line::Own }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_minute_and_then_the_count_of_the_rest() {
        let (quota, start) = (Quota::default(), Instant::now());
        let lines: Vec<_> = (0..25).map(|_| quota.event(start)).collect();
        assert!(lines[..10].iter().all(|line| *line == Line::Own));
        assert!(lines[10..].iter().all(|line| *line == Line::None));
        assert_eq!(quota.event(start + WINDOW), Line::OwnAfter(15));
        assert_eq!(quota.event(start + WINDOW), Line::Own);
        assert_eq!(quota.event(start + 3 * WINDOW), Line::Own);
    }
}
