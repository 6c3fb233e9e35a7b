//! Drawings of the last moment, shared by all viewers of a page: a hundred viewers cost the store as much as
//! one.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use maud::Markup;
use tokio::time::Instant;

use super::viewer::Ask;
use crate::{api::ErrorDetail, operations::Result};

/// How old a drawing may be. Pages ask every two seconds, so each round of all viewers is drawn once.
const FRESH_FOR: Duration = Duration::from_millis(1_500);
/// Most pages that are kept. A further page is drawn for each viewer.
const PAGES_MAX: usize = 200;
/// Longest address that is kept, so that a viewer cannot fill the memory with long filters.
const ADDRESS_MAX: usize = 2_000;

/// A page's content.
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) body: Markup,
}

impl Sheet {
    pub(super) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self { title: title.into(), body }
    }
}

/// A sheet as it is sent.
pub(super) struct Drawn {
    pub(super) title: String,
    pub(super) body: String,
    /// Changes with the content.
    pub(super) tag: String,
}

impl From<Sheet> for Drawn {
    fn from(sheet: Sheet) -> Self {
        let body = sheet.body.into_string();
        let mut hasher = DefaultHasher::new();
        (&sheet.title, &body).hash(&mut hasher);
        Self { title: sheet.title, body, tag: format!("\"{:016x}\"", hasher.finish()) }
    }
}

type Answer = Result<Arc<Drawn>, ErrorDetail>;
/// The last drawing of one page. Its lock is held while the page is drawn, so that other viewers wait for
/// that drawing instead of asking the store.
type Slot = Arc<tokio::sync::Mutex<Option<(Instant, Answer)>>>;

/// The last drawing of each page and each set of rights.
#[derive(Default)]
pub(crate) struct Recent {
    slots: Mutex<HashMap<String, Slot>>,
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

impl Recent {
    /// The recent drawing of a page for these viewers, or a new one.
    pub(super) async fn drawn<F>(&self, ask: &Ask, viewers: &str, draw: impl FnOnce() -> F) -> Answer
    where
        F: Future<Output = Result<Sheet>>,
    {
        let key = format!("{viewers}\n{}", ask.address());
        self.drawn_as(key, ask.wants_fresh(), draw).await
    }

    async fn drawn_as<F>(&self, key: String, fresh: bool, draw: impl FnOnce() -> F) -> Answer
    where
        F: Future<Output = Result<Sheet>>,
    {
        let Some(slot) = self.slot(key) else {
            return draw().await.map(|sheet| Arc::new(Drawn::from(sheet)));
        };
        let arrived = Instant::now();
        let mut last = slot.lock().await;
        // A drawing that began after this viewer came is new for this viewer, however long it took. Otherwise the
        // viewers of a slow store would draw one after the other.
        if let Some((at, answer)) = &*last
            && (*at > arrived || (at.elapsed() < FRESH_FOR && !fresh))
        {
            return answer.clone();
        }
        // The age counts from before the look: what changed during it may be missing.
        let at = Instant::now();
        let answer = draw().await.map(|sheet| Arc::new(Drawn::from(sheet)));
        *last = Some((at, answer.clone()));
        answer
    }

    /// The slot of a page; none if there are too many pages.
    fn slot(&self, key: String) -> Option<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(&key) {
            return Some(Arc::clone(slot));
        }
        // A slot that a request holds stays. One without a drawing that no request holds was given up: its viewer
        // went away.
        slots.retain(|_, slot| {
            let is_fresh =
                |last: Option<&(Instant, Answer)>| last.is_some_and(|(at, _)| at.elapsed() < FRESH_FOR);
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|last| is_fresh(last.as_ref()))
        });
        if slots.len() >= PAGES_MAX || key.len() > ADDRESS_MAX {
            return None;
        }
        Some(Arc::clone(slots.entry(key).or_default()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn sheet(text: &str) -> Sheet {
        Sheet::new(text, maud::html! { (text) })
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_viewers_cost_one_drawing() {
        let (recent, drawings) = (Recent::default(), AtomicU32::new(0));
        let look = || async {
            drawings.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(sheet("queues"))
        };
        let viewers = (0..100).map(|_| recent.drawn_as("queues".into(), false, look));
        for answer in futures_all(viewers).await {
            assert_eq!(answer.unwrap().body, "queues");
        }
        assert_eq!(drawings.load(Ordering::Relaxed), 1);
        tokio::time::advance(FRESH_FOR).await;
        recent.drawn_as("queues".into(), false, look).await.unwrap();
        recent.drawn_as("queues".into(), true, look).await.unwrap();
        assert_eq!(drawings.load(Ordering::Relaxed), 3, "an old one, and one that had to be fresh");
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_shared_too() {
        let (recent, looks) = (Recent::default(), AtomicU32::new(0));
        let look = || async {
            looks.fetch_add(1, Ordering::Relaxed);
            Err(ErrorDetail::invalid("no store"))
        };
        for _ in 0..10 {
            assert!(recent.drawn_as("a".into(), false, look).await.is_err());
        }
        assert_eq!(looks.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_are_kept_are_bounded() {
        let recent = Recent::default();
        for n in 0..PAGES_MAX * 2 {
            let drawn = recent.drawn_as(n.to_string(), false, || async { Ok(sheet("x")) }).await;
            assert!(drawn.is_ok());
        }
        let kept = || recent.slots.lock().unwrap().len();
        assert_eq!(kept(), PAGES_MAX);
        tokio::time::advance(FRESH_FOR).await;
        recent.drawn_as("one".into(), false, || async { Ok(sheet("x")) }).await.unwrap();
        assert_eq!(kept(), 1, "old drawings make room");
        recent.drawn_as("x".repeat(ADDRESS_MAX + 1), false, || async { Ok(sheet("x")) }).await.unwrap();
        assert_eq!(kept(), 1, "a long address is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn viewers_of_a_slow_store_share_two_drawings() {
        let (recent, drawings) = (Recent::default(), AtomicU32::new(0));
        let look = || async {
            drawings.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(FRESH_FOR * 2).await;
            Ok(sheet("slow"))
        };
        // The first one draws. The others come a moment later, and some of them have just changed something.
        let viewers = (0..100).map(|n| {
            let recent = &recent;
            async move {
                tokio::time::sleep(Duration::from_millis(u64::from(n > 0))).await;
                recent.drawn_as("slow".into(), n % 2 == 1, look).await
            }
        });
        for answer in futures_all(viewers).await {
            assert_eq!(answer.unwrap().body, "slow");
        }
        assert_eq!(drawings.load(Ordering::Relaxed), 2, "one for the first, one for all who came during it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_was_given_up_makes_room() {
        let recent = Recent::default();
        for n in 0..PAGES_MAX {
            let never = recent.drawn_as(n.to_string(), false, std::future::pending::<Result<Sheet>>);
            assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
        }
        let look = || async { Ok(sheet("one")) };
        recent.drawn_as("one".into(), false, look).await.unwrap();
        assert_eq!(recent.slots.lock().unwrap().keys().collect::<Vec<_>>(), ["one"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_being_drawn_keeps_its_place() {
        let recent = Recent::default();
        let slow = recent.drawn_as("slow".into(), false, || async {
            tokio::time::sleep(FRESH_FOR).await;
            Ok(sheet("slow"))
        });
        let other = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            recent.drawn_as("other".into(), false, || async { Ok(sheet("other")) }).await.unwrap();
            recent.slots.lock().unwrap().contains_key("slow")
        };
        let (_, is_there) = tokio::join!(slow, other);
        assert!(is_there);
    }

    /// Runs futures at the same time, on one task.
    async fn futures_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
        let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
        std::future::poll_fn(|context| {
            let mut all = std::task::Poll::Ready(());
            for (future, output) in &mut futures {
                if output.is_none() {
                    match future.as_mut().poll(context) {
                        std::task::Poll::Ready(value) => *output = Some(value),
                        std::task::Poll::Pending => all = std::task::Poll::Pending,
                    }
                }
            }
            all
        })
        .await;
        futures.into_iter().filter_map(|(_, output)| output).collect()
    }
}
