//! Queues: how many tasks each has, pause and resume.

use std::{collections::BTreeMap, fmt};

use windlass_core::{Name, Result, store::Depth, store::SharedStore};

/// Handles the queues of a store. Cheap to clone.
///
/// ```
/// use windlass::{Client, Task, TaskState};
///
/// #[derive(serde::Serialize, serde::Deserialize, Task)]
/// #[task(queue = "mail")]
/// struct Greet(String);
///
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let client = Client::new(windlass::open("sqlite::memory:").await?);
/// client.enqueue(Greet("Ada".into())).await?;
/// let depth = client.queues().depth("mail").await?;
/// println!("{} ready", depth.count(TaskState::Ready)); // "1", or "10,000+" where counting stopped
/// assert_eq!(depth.ready, 1);
///
/// client.queues().pause("mail").await?;
/// assert!(client.queues().list().await?[0].paused);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Queues {
    store: SharedStore,
}

/// The state of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// Its name.
    pub name: Name,
    /// Whether the queue is paused: no task is claimed from it.
    pub paused: bool,
    /// How many tasks of each kind are in each state; empty for a queue that was paused before its first
    /// task.
    pub kinds: BTreeMap<Name, Depth>,
}

impl Queue {
    fn new(name: Name) -> Self {
        Self { name, paused: false, kinds: BTreeMap::new() }
    }

    /// How many tasks of all kinds are in each state. Figures above a bound of the store are not exact:
    /// [`Depth::count`] says which.
    pub fn depth(&self) -> Depth {
        self.kinds.values().fold(Depth::default(), |mut sum, depth| {
            sum.add(depth);
            sum
        })
    }
}

impl Queues {
    /// The queues of this store.
    pub fn new(store: SharedStore) -> Self {
        Self { store }
    }

    /// Every queue, by name.
    ///
    /// # Errors
    /// Any [`Error`](windlass_core::Error) of the store.
    pub async fn list(&self) -> Result<Vec<Queue>> {
        let mut queues: BTreeMap<Name, Queue> = BTreeMap::new();
        for lane in self.store.lane_records().await? {
            let queue = queues.entry(lane.queue.clone()).or_insert_with(|| Queue::new(lane.queue));
            queue.paused |= lane.paused;
            queue.kinds.insert(lane.kind, lane.depth);
        }
        for name in self.store.paused_queues().await? {
            queues.entry(name.clone()).or_insert_with(|| Queue::new(name)).paused = true;
        }
        Ok(queues.into_values().collect())
    }

    /// How many tasks of a queue are in each state; all zero for a queue that the store does not know.
    ///
    /// # Errors
    /// [`Error::Invalid`](windlass_core::Error::Invalid) if it is not a valid name, or any other error of the
    /// store.
    pub async fn depth(&self, queue: &str) -> Result<Depth> {
        let name = Name::new("queue", queue)?;
        let mut sum = Depth::default();
        for lane in self.store.lane_records().await?.iter().filter(|lane| lane.queue == name) {
            sum.add(&lane.depth);
        }
        Ok(sum)
    }

    /// Stops claims from a queue, even from one without tasks; running tasks continue. Returns whether that
    /// is a change.
    ///
    /// # Errors
    /// As [`Queues::depth`].
    pub async fn pause(&self, queue: &str) -> Result<bool> {
        self.store.set_queue_paused(&Name::new("queue", queue)?, true).await
    }

    /// Allows claims from a paused queue again. Returns whether that is a change.
    ///
    /// # Errors
    /// As [`Queues::depth`].
    pub async fn resume(&self, queue: &str) -> Result<bool> {
        self.store.set_queue_paused(&Name::new("queue", queue)?, false).await
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}
