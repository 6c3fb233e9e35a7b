//! A waker that whoever rings may hold: a thread that hands something to a task and then gives that task its turn with its own hands
//! need not wake the thread on which the task sleeps.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
};

/// Wakes a task, unless the thread that rings holds it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    sleeper: Mutex<Option<Waker>>,
    /// The thread that holds it; 0 for none.
    holder: AtomicUsize,
    /// Rung by its holder.
    is_rung: AtomicBool,
}

thread_local! {
    /// Its address tells this thread from the others.
    static HERE: u8 = const { 0 };
}

fn here() -> usize {
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

impl Bell {
    /// Whom it wakes from now on.
    pub(crate) fn wakes(&self, sleeper: &Waker) {
        let mut known = self.sleeper.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.as_ref().is_some_and(|known| known.will_wake(sleeper)) {
            *known = Some(sleeper.clone());
        }
    }

    /// Holds it for this thread until the hold is dropped, if nobody does.
    pub(crate) fn hold(&self) -> Option<Hold<'_>> {
        let held = self.holder.compare_exchange(0, here(), Ordering::AcqRel, Ordering::Relaxed);
        held.is_ok().then(|| Hold(self))
    }

    /// Wakes whoever sleeps.
    pub(crate) fn ring(&self) {
        let sleeper = self.sleeper.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.holder.load(Ordering::Acquire) == here() {
            self.is_rung.store(true, Ordering::Release);
        } else {
            self.ring();
        }
    }
}

/// A bell in the hand of one thread. What is rung and not taken before it is dropped wakes the sleeper then.
#[derive(Debug)]
pub(crate) struct Hold<'a>(&'a Bell);

impl Hold<'_> {
    /// Whether it was rung since the last time; whoever asks gives the task its turn.
    pub(crate) fn take(&self) -> bool {
        self.0.is_rung.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let is_rung = self.take();
        self.0.holder.store(0, Ordering::Release);
        if is_rung {
            self.0.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counted {
        fn times(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn bell() -> (Arc<Bell>, Waker, Arc<Counted>) {
        let (bell, sleeper) = (Arc::new(Bell::default()), Arc::new(Counted::default()));
        bell.wakes(&Waker::from(Arc::clone(&sleeper)));
        (Arc::clone(&bell), Waker::from(bell), sleeper)
    }

    #[test]
    fn it_wakes_whoever_sleeps() {
        let (_, waker, sleeper) = bell();
        waker.wake_by_ref();
        assert_eq!(sleeper.times(), 1);
    }

    #[test]
    fn its_holder_wakes_nobody_who_had_its_turn() {
        let (bell, waker, sleeper) = bell();
        let hold = bell.hold().unwrap();
        waker.wake_by_ref();
        assert!(hold.take());
        assert!(!hold.take());
        drop(hold);
        assert_eq!(sleeper.times(), 0);
    }

    #[test]
    fn what_was_rung_and_not_taken_wakes_at_last() {
        let (bell, waker, sleeper) = bell();
        let hold = bell.hold().unwrap();
        waker.wake_by_ref();
        assert_eq!(sleeper.times(), 0);
        drop(hold);
        assert_eq!(sleeper.times(), 1);
        waker.wake();
        assert_eq!(sleeper.times(), 2);
    }

    #[test]
    fn another_thread_wakes_while_it_is_held_and_cannot_hold_it() {
        let (bell, waker, sleeper) = bell();
        let hold = bell.hold().unwrap();
        let other = Arc::clone(&bell);
        std::thread::spawn(move || {
            assert!(other.hold().is_none());
            waker.wake();
        })
        .join()
        .unwrap();
        assert_eq!(sleeper.times(), 1);
        assert!(!hold.take());
    }
}
