//! The `http` kind in the demo: the built-in handler, with a count of the attempts that run at once.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use windlass::{Context, Outcome, handler::RawHandler};
use windlass_kinds::{Http, HttpOptions};

use super::stock::Stock;

/// The handler.
pub(super) struct Visits {
    http: Http,
    stock: Arc<Stock>,
    open: AtomicU32,
    peak: AtomicU32,
    retries: AtomicU64,
}

impl Visits {
    /// A handler that may reach this machine, where the site runs, and public addresses.
    pub(super) fn new(stock: Arc<Stock>) -> anyhow::Result<Self> {
        let options = HttpOptions { allow_targets: vec!["127.0.0.1/32".parse()?], ..HttpOptions::default() };
        Ok(Self {
            http: Http::new(options)?,
            stock,
            open: AtomicU32::new(0),
            peak: AtomicU32::new(0),
            retries: AtomicU64::new(0),
        })
    }

    /// Most handlers that ran at once, so the number of slots in use.
    pub(super) fn peak(&self) -> u32 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Attempts after the first.
    pub(super) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

/// Counts an attempt as ended also when it is dropped.
struct Open<'a>(&'a AtomicU32);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait::async_trait]
impl RawHandler for Visits {
    async fn call(&self, context: Context) -> Outcome {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        let _open = Open(&self.open);
        self.peak.fetch_max(open, Ordering::Relaxed);
        match &context.task().job {
            Some(job) if context.attempt() == 1 => self.stock.note_start(job),
            _ => {
                self.retries.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.http.call(context).await
    }
}
