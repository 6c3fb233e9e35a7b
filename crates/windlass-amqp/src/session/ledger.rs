//! The deliveries of one channel that have no answer yet.
//!
//! ```text
//! tags   1 2 3 4 5 6 7       . running   a answered with ack   s said to the broker
//!        s s a a . a .
//!            └─┬─┘   └ waits for 5, but not longer than the time limit
//!              └ one frame: ack 4 and all before
//! ```
//!
//! The broker numbers deliveries from 1 on each channel. Acks at the front without a gap go out as one frame.
//! An ack behind a slow delivery goes out alone after a while. A rejection concerns one delivery and goes out
//! at once.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// How long an ack may wait for earlier deliveries. Meanwhile it takes a place of the prefetch, and its
/// message would be delivered again if the connection broke.
pub const ACK_WAIT: Duration = Duration::from_millis(3);

/// The answer to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Done: the broker forgets it.
    Ack,
    /// Failed for good: to the dead letters, if the queue has any.
    Reject,
    /// Return it to the queue.
    Requeue,
}

/// One frame to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Acknowledges this delivery and every earlier open one.
    AckUpTo(u64),
    /// Acknowledges this delivery.
    Ack(u64),
    /// Rejects this delivery.
    Reject(u64),
    /// Returns this delivery to the queue.
    Requeue(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// The pool has it, or it waits for the pool.
    Open,
    /// Has an ack that is not sent yet.
    Acked,
    /// Its answer was sent.
    Said,
}

/// The deliveries of one channel.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The tag before that of the first entry.
    said_up_to: u64,
    entries: VecDeque<Entry>,
    /// Acks in the order in which they came; some may have been sent since.
    waiting: VecDeque<(u64, Instant)>,
    /// Answers that need their own frame at once.
    singles: Vec<Frame>,
}

impl Ledger {
    /// Adds a delivery. Tags come without a gap.
    pub fn take(&mut self, tag: u64) {
        // A gap would mean deliveries that this process never saw; they count as answered.
        while self.said_up_to + (self.entries.len() as u64) + 1 < tag {
            self.entries.push_back(Entry::Said);
        }
        self.entries.push_back(Entry::Open);
    }

    /// Adds the answer to a delivery. A second answer changes nothing.
    pub fn answer(&mut self, tag: u64, answer: Answer, now: Instant) -> bool {
        let Some(entry) = self.entry(tag).filter(|entry| **entry == Entry::Open) else { return false };
        *entry = match answer {
            Answer::Ack => Entry::Acked,
            Answer::Reject | Answer::Requeue => Entry::Said,
        };
        match answer {
            Answer::Ack => self.waiting.push_back((tag, now)),
            Answer::Reject => self.singles.push(Frame::Reject(tag)),
            Answer::Requeue => self.singles.push(Frame::Requeue(tag)),
        }
        true
    }

    /// The frames to send now. Each answer is in exactly one frame.
    pub fn frames(&mut self, now: Instant) -> Vec<Frame> {
        let mut frames = std::mem::take(&mut self.singles);
        let mut up_to = None;
        // The front: no open delivery is before these.
        while let Some(entry) = self.entries.front() {
            match entry {
                Entry::Open => break,
                // Only a delivery that the broker still counts as open may carry the frame for all before it.
                Entry::Acked => up_to = Some(self.said_up_to + 1),
                Entry::Said => {}
            }
            self.said_up_to += 1;
            self.entries.pop_front();
        }
        frames.extend(up_to.map(Frame::AckUpTo));
        while let Some((tag, since)) = self.waiting.front().copied() {
            match self.entry(tag) {
                Some(entry) if *entry == Entry::Acked => {
                    if now.duration_since(since) < ACK_WAIT {
                        break;
                    }
                    *entry = Entry::Said;
                    frames.push(Frame::Ack(tag));
                }
                // Sent together with the front.
                _ => {}
            }
            self.waiting.pop_front();
        }
        frames
    }

    /// The number of entries, from the first one that the broker has no answer for.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many deliveries have no sent answer, counted from the entries.
    pub fn open(&self) -> usize {
        self.entries.iter().filter(|entry| **entry != Entry::Said).count()
    }

    /// The entry of a delivery, if it is still in the ledger.
    fn entry(&mut self, tag: u64) -> Option<&mut Entry> {
        let place = tag.checked_sub(self.said_up_to + 1)?;
        self.entries.get_mut(place as usize)
    }

    /// When the oldest ack behind an open delivery has waited long enough.
    pub fn next_look(&self) -> Option<Instant> {
        self.waiting.front().map(|(_, since)| *since + ACK_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(count: u64) -> (Ledger, Instant) {
        let mut ledger = Ledger::default();
        (1..=count).for_each(|tag| ledger.take(tag));
        (ledger, Instant::now())
    }

    #[test]
    fn answers_in_order_are_one_frame() {
        let (mut ledger, now) = ledger(4);
        for tag in [2, 1, 3] {
            assert!(ledger.answer(tag, Answer::Ack, now));
        }
        assert_eq!(ledger.frames(now), [Frame::AckUpTo(3)]);
        assert_eq!(ledger.frames(now), []);
        assert_eq!(ledger.entries, [Entry::Open]);
    }

    #[test]
    fn ack_behind_an_open_delivery_waits_up_to_the_limit() {
        let (mut ledger, now) = ledger(3);
        ledger.answer(2, Answer::Ack, now);
        ledger.answer(3, Answer::Ack, now);
        assert_eq!(ledger.frames(now), []);
        assert_eq!(ledger.next_look(), Some(now + ACK_WAIT));
        assert_eq!(ledger.frames(now + ACK_WAIT), [Frame::Ack(2), Frame::Ack(3)]);
        assert_eq!(ledger.next_look(), None);
        ledger.answer(1, Answer::Ack, now);
        assert_eq!(ledger.frames(now), [Frame::AckUpTo(1)], "not up to 3: the broker has forgotten 2 and 3");
    }

    #[test]
    fn rejection_goes_out_at_once_in_its_own_frame() {
        let (mut ledger, now) = ledger(3);
        ledger.answer(3, Answer::Reject, now);
        assert_eq!(ledger.frames(now), [Frame::Reject(3)]);
        ledger.answer(1, Answer::Ack, now);
        ledger.answer(2, Answer::Requeue, now);
        assert_eq!(ledger.frames(now), [Frame::Requeue(2), Frame::AckUpTo(1)]);
        assert!(ledger.entries.is_empty());
    }

    #[test]
    fn second_answer_is_refused() {
        let (mut ledger, now) = ledger(1);
        assert!(ledger.answer(1, Answer::Ack, now));
        assert!(!ledger.answer(1, Answer::Reject, now));
        assert!(!ledger.answer(2, Answer::Ack, now), "never delivered");
        assert_eq!(ledger.frames(now), [Frame::AckUpTo(1)]);
        assert!(!ledger.answer(1, Answer::Ack, now));
        assert_eq!(ledger.frames(now), []);
    }

    /// Every order of three kinds of answers over seven deliveries, with frames sent after each answer. The
    /// broker of the test forgets answered deliveries and refuses unknown ones.
    #[test]
    fn every_delivery_is_settled_exactly_once_in_every_order() {
        const COUNT: usize = 7;
        let mut seed = 1_u64;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for _ in 0..2_000 {
            let (mut ledger, mut now) = ledger(COUNT as u64);
            let mut open: Vec<u64> = (1..=COUNT as u64).collect();
            let (mut at_broker, mut wanted, mut got) = (open.clone(), Vec::new(), Vec::new());
            while !open.is_empty() || !at_broker.is_empty() {
                if open.is_empty() {
                    now += ACK_WAIT;
                } else {
                    let tag = open.swap_remove(draw(open.len()));
                    let answer = [Answer::Ack, Answer::Ack, Answer::Reject, Answer::Requeue][draw(4)];
                    assert!(ledger.answer(tag, answer, now));
                    wanted.push((tag, answer));
                    now += ACK_WAIT / [1, 2, 5][draw(3)] as u32;
                }
                for frame in ledger.frames(now) {
                    let (tag, answer) = match frame {
                        Frame::AckUpTo(tag) | Frame::Ack(tag) => (tag, Answer::Ack),
                        Frame::Reject(tag) => (tag, Answer::Reject),
                        Frame::Requeue(tag) => (tag, Answer::Requeue),
                    };
                    assert!(at_broker.contains(&tag), "{frame:?}: the broker does not know it");
                    let is_met =
                        |other: u64| other == tag || (matches!(frame, Frame::AckUpTo(_)) && other < tag);
                    got.extend(
                        at_broker.iter().filter(|other| is_met(**other)).map(|other| (*other, answer)),
                    );
                    at_broker.retain(|other| !is_met(*other));
                }
            }
            wanted.sort_unstable_by_key(|(tag, _)| *tag);
            got.sort_unstable_by_key(|(tag, _)| *tag);
            assert_eq!(got, wanted);
        }
    }
}
