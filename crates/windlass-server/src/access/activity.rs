//! The last calls that changed something, in the store. A call is answered before it is written there: its entry
//! waits in a bounded queue, and several entries are written at once. An entry that the store does not take is
//! lost; the audit line in the log is not.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tracing::warn;
use windlass_core::{Error, NewCall, operators::CALL_TEXT_MAX, text::is_unsafe};

use super::{Access, Answered, Call, Caller, audit};

/// Most entries that wait; the oldest make room. The store keeps no more than these.
const WAITING_MAX: usize = 1_000;
/// How long entries are gathered before they are written.
const GATHER: Duration = Duration::from_millis(250);
/// How long the store may take to write them.
const WRITE_MAX: Duration = Duration::from_secs(5);

/// What a handler says about its call, beside the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It was a dry run.
    Nothing,
    /// It was about this; the path does not say it.
    About(String),
}

/// Entries that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<VecDeque<(Instant, NewCall)>>,
    wake: Notify,
    /// Locked while entries are written.
    writing: tokio::sync::Mutex<()>,
}

impl Queue {
    fn add(&self, call: NewCall) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back((Instant::now(), call));
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<NewCall> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let aged = waiting.into_iter();
        aged.map(|(since, call)| NewCall { age: since.elapsed(), ..call }).collect()
    }
}

impl Access {
    /// Notes how a call was answered: in the log if it is a call that is audited, and in the activity if it
    /// changed something.
    pub(crate) fn note(
        &self,
        caller: &Caller,
        call: &Call,
        (path, about): (&str, &str),
        answered: Answered,
        effect: Option<&Effect>,
    ) {
        audit(caller, call, (path, about), answered);
        // Callers without the scope admin can make refused calls as often as they like, and end sessions of
        // their own: these must not push out the entries of others.
        let result = answered.outcome();
        let has_changed = matches!(result, "done" | "failed") && effect != Some(&Effect::Nothing);
        if !call.destructive || !has_changed || !caller.is_admin() {
            return;
        }
        let about = match effect {
            Some(Effect::About(about)) => about,
            _ if call.is_grpc() => about,
            _ => path,
        };
        self.activity.add(NewCall {
            age: Duration::ZERO,
            who: kept(&caller.to_string()),
            call: call.name.to_owned(),
            about: kept(about),
            result: result.to_owned(),
        });
    }

    /// Writes the entries to the store, from time to time. Ends only by being dropped.
    pub(crate) async fn keep_activity(&self) -> Infallible {
        loop {
            self.activity.wake.notified().await;
            sleep(GATHER).await;
            self.write_activity().await;
        }
    }

    /// Writes the entries that wait.
    pub(crate) async fn write_activity(&self) {
        let Some(store) = &self.store else { return };
        // A caller that wants to read what was written waits until it is.
        let _writing = self.activity.writing.lock().await;
        let calls = self.activity.take();
        if calls.is_empty() {
            return;
        }
        let lost = match timeout(WRITE_MAX, store.operators().note_calls(&calls)).await {
            // Such a store keeps no activity at all.
            Ok(Ok(()) | Err(Error::Unsupported(_))) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        warn!(calls = calls.len(), error = %lost, "the store has not kept calls for the activity; the log has them");
    }
}

/// A text as it is kept: short, and without letters that a store or a terminal does not take.
fn kept(text: &str) -> String {
    text.chars()
        .take(CALL_TEXT_MAX)
        .map(|letter| if is_unsafe(letter) { '\u{fffd}' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(about: usize) -> NewCall {
        let text = || "x".to_owned();
        NewCall { age: Duration::ZERO, who: text(), call: text(), about: about.to_string(), result: text() }
    }

    #[tokio::test(start_paused = true)]
    async fn entries_that_wait_are_bounded_and_know_their_age() {
        let queue = Queue::default();
        for n in 0..=WAITING_MAX {
            queue.add(call(n));
        }
        tokio::time::advance(Duration::from_secs(3)).await;
        let taken = queue.take();
        assert_eq!((taken.len(), taken[0].about.as_str()), (WAITING_MAX, "1"));
        assert_eq!(taken[0].age, Duration::from_secs(3));
        assert!(queue.take().is_empty());
    }

    #[test]
    fn a_text_is_kept_short_and_printable() {
        assert_eq!(kept("a\0b\u{1b}[2J"), "a\u{fffd}b\u{fffd}[2J");
        assert_eq!(kept(&"é".repeat(1_000)).chars().count(), CALL_TEXT_MAX);
    }
}
