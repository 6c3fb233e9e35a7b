//! The counter of slots under a scheduler that tries thousands of interleavings.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../src/pool/slots.rs"]
mod slots;

/// Replaces `sync.rs` beside `slots.rs`: the checker's primitives instead of the standard ones.
mod sync {
    pub(crate) use shuttle::sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };
}

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use slots::Slots;

const INTERLEAVINGS: usize = 3_000;
/// The depth that finds bugs that need so many ordered events, besides the random schedules.
const PCT_DEPTH: usize = 4;

fn check(test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), INTERLEAVINGS);
    shuttle::check_pct(test, INTERLEAVINGS, PCT_DEPTH);
}

/// Keeps one signal until a thread waits for it, as the pool's notification does.
#[derive(Default)]
struct Signal {
    sent: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn send(&self) {
        *self.sent.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut sent = self.sent.lock().unwrap();
        while !*sent {
            sent = self.changed.wait(sent).unwrap();
        }
        *sent = false;
    }
}

/// Counts the slots in use independently of the counter under test.
#[derive(Default)]
struct Witness {
    inside: AtomicUsize,
}

impl Witness {
    fn enter(&self, count: usize, total: usize) {
        let before = self.inside.fetch_add(count, SeqCst);
        assert!(before + count <= total, "{} in use of {total}", before + count);
    }

    fn leave(&self, count: usize) {
        self.inside.fetch_sub(count, SeqCst);
    }
}

#[test]
fn never_more_than_the_total_is_held_and_at_rest_nothing_is() {
    check(|| {
        const TOTAL: usize = 3;
        let slots = Slots::new(TOTAL, || {});
        let witness = Arc::new(Witness::default());
        let threads: Vec<_> = (1..=3)
            .map(|wanted| {
                let (slots, witness) = (slots.clone(), witness.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        let held = slots.reserve(wanted);
                        assert!(held.len() <= wanted);
                        witness.enter(held.len(), TOTAL);
                        thread::yield_now();
                        witness.leave(held.len());
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(slots.in_use(), 0);
        assert_eq!(slots.reserve(usize::MAX).len(), slots.total(), "no slot was lost");
    });
}

#[test]
fn a_slot_is_returned_once_when_its_holder_panics() {
    check(|| {
        const TOTAL: usize = 2;
        let slots = Slots::new(TOTAL, || {});
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let slots = slots.clone();
                thread::spawn(move || {
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        let mut held = slots.reserve(2);
                        let mut other = slots.none();
                        held.hand_over(&mut other, 1);
                        thread::yield_now();
                        // `resume_unwind` unwinds like a panic and prints nothing.
                        if number == 0 {
                            std::panic::resume_unwind(Box::new("task failed"));
                        }
                        other.release();
                    }));
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(slots.in_use(), 0);
        assert_eq!(slots.reserve(usize::MAX).len(), TOTAL);
    });
}

#[test]
fn a_slot_that_is_handed_over_belongs_to_one_holder_at_a_time() {
    check(|| {
        const TOTAL: usize = 2;
        let slots = Slots::new(TOTAL, || {});
        // A coordinator moves its slots to the tasks that it starts; they end while it continues.
        let queue = Arc::new(Mutex::new(slots.none()));
        let witness = Arc::new(Witness::default());
        let consumer = {
            let (slots, queue, witness) = (slots.clone(), queue.clone(), witness.clone());
            thread::spawn(move || {
                let mut slot = slots.none();
                let mut ran = 0;
                while ran < 2 {
                    if queue.lock().unwrap().hand_over(&mut slot, 1) == 1 {
                        witness.enter(1, TOTAL);
                        thread::yield_now();
                        witness.leave(1);
                        slot.release();
                        ran += 1;
                    }
                    thread::yield_now();
                }
            })
        };
        let mut started = 0;
        while started < 2 {
            let mut reserved = slots.reserve(2 - started);
            while reserved.hand_over(&mut queue.lock().unwrap(), 1) == 1 {
                started += 1;
            }
            thread::yield_now();
        }
        consumer.join().unwrap();
        assert_eq!(slots.in_use(), 0);
    });
}

#[test]
fn no_waiter_misses_a_freed_slot() {
    check(|| {
        let freed = Arc::new(Signal::default());
        let slots = Slots::new(1, {
            let freed = freed.clone();
            move || freed.send()
        });
        let holders: Vec<_> = (0..2)
            .map(|_| {
                let slots = slots.clone();
                thread::spawn(move || {
                    let mut held = slots.reserve(1);
                    thread::yield_now();
                    held.release();
                    held.reserve_more(1);
                })
            })
            .collect();
        // A lost wake-up makes this thread wait for ever, which the checker reports as a deadlock.
        for _ in 0..2 {
            loop {
                slots.acknowledge();
                if slots.reserve(1).len() == 1 {
                    break;
                }
                freed.wait();
            }
        }
        for thread in holders {
            thread.join().unwrap();
        }
        assert_eq!(slots.in_use(), 0);
    });
}

#[test]
fn one_signal_covers_all_freed_slots_until_acknowledged() {
    check(|| {
        let signals = Arc::new(AtomicUsize::new(0));
        let slots = Slots::new(4, {
            let signals = signals.clone();
            move || {
                signals.fetch_add(1, SeqCst);
            }
        });
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let slots = slots.clone();
                thread::spawn(move || {
                    drop(slots.reserve(1));
                    drop(slots.reserve(1));
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(signals.load(SeqCst), 1);
        slots.acknowledge();
        drop(slots.reserve(1));
        assert_eq!(signals.load(SeqCst), 2);
    });
}

#[test]
fn a_waiter_is_notified_of_a_raised_limit() {
    check(|| {
        let signal = Arc::new(Signal::default());
        let hook = signal.clone();
        let slots = Slots::new(3, move || hook.send());
        slots.allow(1);
        let held = slots.reserve(3);
        assert_eq!((held.len(), slots.free(), slots.total()), (1, 0, 3));
        let waiter = {
            let (slots, signal) = (slots.clone(), signal.clone());
            thread::spawn(move || {
                loop {
                    slots.acknowledge();
                    let held = slots.reserve(1);
                    if held.len() == 1 {
                        return;
                    }
                    signal.wait();
                }
            })
        };
        slots.allow(2);
        waiter.join().unwrap();
        drop(held);
        assert_eq!(slots.in_use(), 0);
    });
}

#[test]
fn a_lowered_limit_holds_once_excess_slots_are_returned() {
    check(|| {
        let slots = Slots::new(4, || {});
        slots.resize(4);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let slots = slots.clone();
                thread::spawn(move || {
                    let mut held = slots.reserve(1);
                    thread::yield_now();
                    held.release_excess();
                    held.len()
                })
            })
            .collect();
        slots.allow(1);
        let kept: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(kept <= 3 && slots.in_use() == 0 && slots.limit() == 1);
        assert_eq!(slots.reserve(9).len(), 1);
    });
}
