//! The queue of spans to send. It is bounded, and adding a span never waits.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;
use windlass_core::trace::Span;

/// Most spans in the queue; more are dropped and counted. About 8 MB.
pub const QUEUE_MAX: usize = 8_192;
/// Spans in one request: about half a megabyte, as collectors expect.
pub(crate) const BATCH_MAX: usize = 512;

/// The queue.
#[derive(Default)]
pub(crate) struct Queue {
    spans: Mutex<Vec<Span>>,
    /// Notified when there is a first span, or a full batch.
    changed: Notify,
    recorded: AtomicU64,
    dropped: AtomicU64,
}

impl Queue {
    /// Takes a span, or counts it as dropped.
    pub(crate) fn push(&self, span: Span) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() >= QUEUE_MAX {
            drop(spans);
            self.drop_spans(1);
            return;
        }
        spans.push(span);
        let len = spans.len();
        drop(spans);
        if len == 1 || len == BATCH_MAX {
            self.changed.notify_one();
        }
    }

    /// Removes the oldest spans, at most a batch.
    pub(crate) fn take(&self) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let n = spans.len().min(BATCH_MAX);
        let rest = spans.split_off(n);
        std::mem::replace(&mut *spans, rest)
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for a first span or a full batch; one that came before the call counts.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn drop_spans(&self, n: u64) {
        self.dropped.fetch_add(n, Ordering::Relaxed);
    }

    /// All spans that were recorded, dropped or not.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use windlass_core::{TraceContext, trace::SpanKind};

    use super::*;

    fn span(span_id: u64) -> Span {
        Span {
            context: TraceContext { trace_id: 1, span_id, sampled: true },
            parent: None,
            name: String::new(),
            kind: SpanKind::Internal,
            start: UNIX_EPOCH,
            end: UNIX_EPOCH,
            attributes: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_counts_them() {
        let queue = Queue::default();
        for n in 0..QUEUE_MAX as u64 + 3 {
            queue.push(span(n));
        }
        assert_eq!((queue.len(), queue.dropped()), (QUEUE_MAX, 3));
        let batch = queue.take();
        assert_eq!((batch.len(), batch[0].context.span_id), (BATCH_MAX, 0));
        queue.push(span(0));
        assert_eq!((queue.len(), queue.dropped()), (QUEUE_MAX - BATCH_MAX + 1, 3));
    }
}
