//! The demo's jobs and their tasks. A feeder keeps enough tasks waiting, and no more.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use windlass::Payload;
use windlass_core::{Name, NewTask, gate::JobChange, store::SharedStore};

/// The queue of the demo: its worker serves no other.
pub(super) const QUEUE: &str = "demo";
/// Waiting tasks of a job, as a multiple of its limit. At two tasks a second they last for many rounds of
/// the feeder.
const WAITING_PER_PLACE: u64 = 4;
/// Pause between two rounds. Each round adds about as many tasks as started since the last, so no single
/// enqueue is large.
const ROUND: Duration = Duration::from_millis(100);
/// Tasks in one call.
const BATCH_MAX: usize = 1_000;

/// One job.
struct Job {
    name: Name,
    url: String,
    enqueued: AtomicU64,
    started: AtomicU64,
}

/// How many tasks each job was given and how many it has started.
pub(super) struct Stock {
    jobs: Vec<Job>,
    places: HashMap<Name, usize>,
    waiting: u64,
    concurrency: u32,
}

impl Stock {
    /// One job for each host.
    pub(super) fn new(hosts: &[String], concurrency: u32) -> anyhow::Result<Self> {
        let jobs = hosts
            .iter()
            .enumerate()
            .map(|(place, host)| {
                let name = Name::new("job", format!("demo-{}", site_name(place)))?;
                let url = format!("http://{host}/page/");
                Ok(Job { name, url, enqueued: AtomicU64::new(0), started: AtomicU64::new(0) })
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let places = jobs.iter().enumerate().map(|(place, job)| (job.name.clone(), place)).collect();
        Ok(Self { jobs, places, waiting: u64::from(concurrency) * WAITING_PER_PLACE, concurrency })
    }

    /// Makes the jobs with their limit.
    pub(super) async fn set_limits(&self, store: &SharedStore) -> anyhow::Result<()> {
        let change = JobChange { concurrency: Some(Some(self.concurrency)), ..JobChange::default() };
        for job in &self.jobs {
            store.gates().set_job(&job.name, &change).await?;
        }
        Ok(())
    }

    /// Removes the jobs and their waiting tasks.
    pub(super) async fn remove(&self, store: &SharedStore) -> anyhow::Result<()> {
        for job in &self.jobs {
            store.gates().remove_job(&job.name, false).await?;
        }
        Ok(())
    }

    /// Notes that a task of a job starts its first attempt.
    pub(super) fn note_start(&self, job: &Name) {
        if let Some(job) = self.places.get(job).and_then(|place| self.jobs.get(*place)) {
            job.started.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Fills up every job once.
    pub(super) async fn fill(&self, store: &SharedStore) -> anyhow::Result<()> {
        let tasks = self.missing()?;
        for batch in tasks.chunks(BATCH_MAX) {
            store.enqueue(batch.to_vec()).await?;
        }
        Ok(())
    }

    /// Keeps filling up the jobs. Ends only with an error.
    pub(super) async fn keep_filled(self: Arc<Self>, store: SharedStore) -> anyhow::Error {
        loop {
            tokio::time::sleep(ROUND).await;
            if let Err(error) = self.fill(&store).await {
                return error.context("no more tasks could be enqueued");
            }
        }
    }

    fn missing(&self) -> anyhow::Result<Vec<NewTask>> {
        let mut tasks = Vec::new();
        for job in &self.jobs {
            let wanted = job.started.load(Ordering::Relaxed) + self.waiting;
            let enqueued = job.enqueued.fetch_max(wanted, Ordering::Relaxed);
            for page in enqueued..wanted {
                let url = format!("{}{page}", job.url);
                let mut task = NewTask::new("http", Payload::json(&serde_json::json!({ "url": url }))?)?;
                task.queue = Name::new("queue", QUEUE)?;
                task.job = Some(job.name.clone());
                tasks.push(task);
            }
        }
        Ok(tasks)
    }
}

/// The name of a host: its number, from one.
pub(super) fn site_name(place: usize) -> String {
    format!("site-{:02}", place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_gets_as_many_new_tasks_as_it_started() {
        let hosts = ["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        let stock = Stock::new(&hosts, 3).unwrap();
        assert_eq!(stock.missing().unwrap().len(), 24);
        assert_eq!(stock.missing().unwrap().len(), 0);
        let second = Name::new("job", "demo-site-02").unwrap();
        stock.note_start(&second);
        stock.note_start(&second);
        let tasks = stock.missing().unwrap();
        assert!(tasks.len() == 2 && tasks.iter().all(|task| task.job.as_ref() == Some(&second)), "{tasks:?}");
    }
}
