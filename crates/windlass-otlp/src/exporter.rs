//! The exporter takes spans and sends them on its own thread. Handlers that block every thread of the runtime
//! do not delay it, and it does not delay them.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::sync::watch;
use windlass_core::trace::{Span, SpanCounts, SpanSink};

use crate::{
    body::{Service, body},
    endpoint::Endpoint,
    queue::{BATCH_MAX, Queue},
    send::{Sender, Sent},
};

/// How long the first span of a batch waits for more spans.
const LINGER: Duration = Duration::from_secs(1);
/// How often a batch is sent before its spans are dropped.
const TRIES: u32 = 3;
/// The pause before the second try; it doubles.
const PAUSE: Duration = Duration::from_millis(500);
/// Least time between two log lines about lost spans.
const LINE_EVERY: Duration = Duration::from_mins(1);

/// Counters of an exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Spans that the collector accepted.
    pub exported: u64,
    /// Spans that were lost: the queue was full, or the collector did not accept them.
    pub dropped: u64,
}

/// Sends spans to a collector.
pub struct Exporter {
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

#[derive(Default)]
struct Shared {
    queue: Queue,
    exported: AtomicU64,
}

impl Exporter {
    /// Starts the thread that sends.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(endpoint: Endpoint, service: Service) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared::default());
        let (closing, is_closing) = watch::channel(false);
        let (end, ended) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut sending = Sending {
            shared: Arc::clone(&shared),
            sender: Sender::new(endpoint),
            service,
            closing: is_closing,
            last_line: None,
        };
        std::thread::Builder::new().name("windlass-otlp".to_owned()).spawn(move || {
            runtime.block_on(sending.run());
            // The receiver may be gone: then there is nothing to tell.
            let _ = end.send(true);
        })?;
        Ok(Arc::new(Self { shared, closing, ended }))
    }

    /// The counters now.
    pub fn stats(&self) -> Stats {
        Stats { exported: self.shared.exported.load(Ordering::Relaxed), dropped: self.shared.queue.dropped() }
    }

    /// Sends queued spans until the time limit; spans that are left then, or arrive later, are dropped.
    pub async fn shutdown(&self, limit: Duration) -> Stats {
        self.closing.send_replace(true);
        let mut ended = self.ended.clone();
        if tokio::time::timeout(limit, ended.wait_for(|ended| *ended)).await.is_ok() {
            return self.stats();
        }
        // Queued spans and spans on their way count as lost, so that both counters add up to all spans.
        let exported = self.stats().exported;
        Stats { exported, dropped: self.shared.queue.recorded().saturating_sub(exported) }
    }
}

impl SpanSink for Exporter {
    fn record(&self, span: Span) {
        self.shared.queue.push(span);
    }

    fn counts(&self) -> SpanCounts {
        let Stats { exported, dropped } = self.stats();
        SpanCounts { exported, dropped }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The loop on the thread.
struct Sending {
    shared: Arc<Shared>,
    sender: Sender,
    service: Service,
    closing: watch::Receiver<bool>,
    last_line: Option<Instant>,
}

impl Sending {
    /// Sends batches until the exporter closes and the queue is empty.
    async fn run(&mut self) {
        loop {
            self.gather().await;
            let batch = self.shared.queue.take();
            if !batch.is_empty() {
                self.deliver(&batch).await;
            } else if self.is_closing() {
                return;
            }
        }
    }

    fn is_closing(&self) -> bool {
        // A dropped sender means closing too.
        *self.closing.borrow() || self.closing.has_changed().is_err()
    }

    /// Waits for a full batch, or for `LINGER` after the first span.
    async fn gather(&mut self) {
        let shared = Arc::clone(&self.shared);
        while shared.queue.len() == 0 && !self.is_closing() {
            tokio::select! {
                () = shared.queue.changed() => {}
                _ = self.closing.changed() => {}
            }
        }
        let lingered = tokio::time::sleep(LINGER);
        tokio::pin!(lingered);
        while shared.queue.len() < BATCH_MAX && !self.is_closing() {
            tokio::select! {
                () = &mut lingered => return,
                () = shared.queue.changed() => {}
                _ = self.closing.changed() => {}
            }
        }
    }

    async fn deliver(&mut self, batch: &[Span]) {
        let (n, body) = (batch.len() as u64, Bytes::from(body(&self.service, batch)));
        let mut pause = PAUSE;
        for attempt in 1..=TRIES {
            let problem = match self.sender.send(body.clone()).await {
                Sent::Taken { refused } => {
                    let refused = refused.min(n);
                    self.shared.exported.fetch_add(n - refused, Ordering::Relaxed);
                    self.shared.queue.drop_spans(refused);
                    return;
                }
                Sent::Refused(problem) => return self.lost(n, &problem),
                Sent::Later(problem) => problem,
            };
            // While closing there is no time for a second try: other batches wait.
            if attempt == TRIES || self.is_closing() {
                return self.lost(n, &problem);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Counts a lost batch, and logs it at most once in `LINE_EVERY`.
    fn lost(&mut self, n: u64, problem: &str) {
        self.shared.queue.drop_spans(n);
        if self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            let dropped = self.shared.queue.dropped();
            tracing::warn!(dropped, problem, "spans could not be exported; tasks are not affected");
        }
    }
}
