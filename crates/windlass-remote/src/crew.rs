//! The tasks of one connection, at which one thread is at a time: usually the driver's, and whoever makes a call gives them their turns
//! with their own hands. A thread that sleeps takes longer to wake than a call takes to send.
//!
//! Never two at once: where the tasks of a connection run beside each other, a call that is handed over while the server says goodbye
//! can be lost between them.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::{runtime::Handle, task::unconstrained};
use windlass_core::bell::Bell;

/// Rounds of turns that a caller gives; a call takes three or four.
const TURNS_MAX: usize = 16;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// See the module.
#[derive(Clone)]
pub(crate) struct Crew(Arc<Inner>);

struct Inner {
    /// Where timers and sockets live, whoever gives the tasks their turns.
    driver: Handle,
    /// Held during turns.
    tasks: Mutex<FuturesUnordered<Task>>,
    /// Tasks that have not had a turn yet; a task in its turn may add some.
    joined: Mutex<Vec<Task>>,
    /// Wakes whoever runs the crew: whatever happens is told to that one, whoever looked last.
    bell: Arc<Bell>,
}

impl Crew {
    pub(crate) fn new(driver: &Handle) -> Self {
        Self(Arc::new(Inner {
            driver: driver.clone(),
            tasks: Mutex::default(),
            joined: Mutex::default(),
            bell: Arc::default(),
        }))
    }

    /// Adds a task.
    pub(crate) fn join(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Not on the budget of a caller who gives it a turn: what that has left undone nobody else would know of.
        self.0.joined().push(Box::pin(unconstrained(task)));
        self.0.bell.wake_by_ref();
    }

    /// Gives the tasks their turns until all have ended.
    pub(crate) async fn run(self) {
        let _ends = Ends(&self.0);
        std::future::poll_fn(|cx| {
            self.0.bell.wakes(cx.waker());
            self.0.turns(&mut self.0.tasks())
        })
        .await;
    }

    /// Hands something over and gives the tasks their turns until that has had its effect; if somebody is at it, they do.
    pub(crate) fn send<T>(&self, hand_over: impl FnOnce() -> T) -> T {
        let Some(hold) = self.0.bell.hold() else { return hand_over() };
        let answer = hand_over();
        if let Ok(mut tasks) = self.0.tasks.try_lock() {
            let _context = self.0.driver.enter();
            // Whenever one task has something for another; what is more than a call needs is left to whoever runs the crew.
            for _ in 0..TURNS_MAX {
                if !hold.take() {
                    break;
                }
                if self.0.turns(&mut tasks).is_ready() {
                    self.0.bell.ring();
                }
            }
        }
        answer
    }
}

impl Inner {
    fn turns(&self, tasks: &mut FuturesUnordered<Task>) -> Poll<()> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut cx = Context::from_waker(&waker);
        loop {
            tasks.extend(std::mem::take(&mut *self.joined()));
            let turn = tasks.poll_next_unpin(&mut cx);
            let has_more = !self.joined().is_empty();
            match turn {
                Poll::Pending if !has_more => return Poll::Pending,
                Poll::Ready(None) if !has_more => return Poll::Ready(()),
                _ => {}
            }
        }
    }

    fn tasks(&self) -> MutexGuard<'_, FuturesUnordered<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn joined(&self) -> MutexGuard<'_, Vec<Task>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Crew {
    fn execute(&self, task: F) {
        self.join(task);
    }
}

/// Ends the tasks when whoever runs them does, however that comes about: without them a connection is closed, and those who wait for
/// answers are told.
struct Ends<'a>(&'a Inner);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // Dropped outside of the locks.
        let tasks = std::mem::take(&mut *self.0.tasks());
        let joined = std::mem::take(&mut *self.0.joined());
        drop((tasks, joined));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    /// A crew whose runner is never polled again after it began.
    fn stopped(crew: &Crew) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut run: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(crew.clone().run());
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        run
    }

    #[tokio::test]
    async fn whoever_hands_something_over_gives_the_tasks_their_turns() {
        let crew = Crew::new(&Handle::current());
        let ((ask, mut asked), (answer, mut answered)) = (mpsc::channel::<u32>(1), mpsc::channel(1));
        let adding = crew.clone();
        crew.join(async move {
            while let Some(n) = asked.recv().await {
                let answer = answer.clone();
                // As a connection does for every call.
                adding.join(async move { answer.send(n + 1).await.unwrap() });
            }
        });
        let _run = stopped(&crew);
        assert!(answered.try_recv().is_err());
        for n in [1, 5] {
            crew.send(|| ask.try_send(n).unwrap());
            assert_eq!(answered.try_recv(), Ok(n + 1));
        }
    }

    #[tokio::test]
    async fn the_runner_ends_with_the_last_task_and_takes_the_others_along() {
        let crew = Crew::new(&Handle::current());
        let (end, ended) = oneshot::channel::<()>();
        crew.join(async move { drop(ended.await) });
        let run = tokio::spawn(crew.clone().run());
        end.send(()).unwrap();
        run.await.unwrap();

        let (mut end, ended) = oneshot::channel::<()>();
        crew.join(async move { drop(ended.await) });
        let run = stopped(&crew);
        drop(run);
        end.closed().await;
        crew.send(|| ());
    }

    #[tokio::test]
    async fn a_thread_without_a_runtime_finds_the_drivers_clock() {
        let crew = Crew::new(&Handle::current());
        let (begin, begun) = oneshot::channel::<()>();
        let (slept, sleeping) = oneshot::channel();
        crew.join(async move {
            begun.await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            slept.send(()).unwrap();
        });
        let run = tokio::spawn(crew.clone().run());
        tokio::task::yield_now().await;
        std::thread::spawn(move || crew.send(|| begin.send(()).unwrap())).join().unwrap();
        sleeping.await.unwrap();
        run.await.unwrap();
    }
}
