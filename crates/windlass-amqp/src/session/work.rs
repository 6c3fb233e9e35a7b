//! Runs one delivery in the pool and reports how it ended.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::Instant,
};

use tokio::sync::mpsc::UnboundedSender;
use tracing::Instrument as _;
use windlass::{
    Outcome, Pool,
    handler::{CancelReason, Cancellation},
    pool::DispatchOptions,
};

use crate::{Delivery, consumer::Plan, meters::Meters, session::decision::End, span::Handling};

/// How one delivery of a channel ended.
#[derive(Debug)]
pub struct Ended {
    pub tag: u64,
    pub worker: usize,
    pub end: End,
    pub delivered_before: u32,
    /// When its handler started; `None` if it did not.
    pub started: Option<Instant>,
}

/// Reports to the session how a delivery ended. The task holds it, so it is dropped, and reports, in every
/// case.
#[derive(Debug)]
pub struct Report {
    /// The session may be gone. Unbounded, but never longer than the prefetch.
    session: UnboundedSender<Ended>,
    meters: Arc<Meters>,
    tag: u64,
    worker: usize,
    delivered_before: u32,
    context: Option<Cancellation>,
    started: Option<Instant>,
    outcome: Option<Result<Outcome, String>>,
    /// The span of its handler, if it is traced.
    pub span: Option<Handling>,
}

impl Report {
    /// A report of a delivery that counts as running from now on.
    pub fn new(
        session: UnboundedSender<Ended>,
        meters: Arc<Meters>,
        (tag, delivered_before): (u64, u32),
        worker: usize,
    ) -> Self {
        meters.running.fetch_add(1, Ordering::Relaxed);
        let (context, started, outcome, span) = (None, None, None, None);
        Self { session, meters, tag, worker, delivered_before, context, started, outcome, span }
    }

    /// Reports that the delivery is not handled, and why.
    pub fn refuse(mut self, reason: String) {
        self.outcome = Some(Err(reason));
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.meters.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(started) = self.started {
            self.meters.ran(started.elapsed());
        }
        let end = match self.outcome.take() {
            Some(Ok(outcome)) => End::Outcome(outcome),
            Some(Err(reason)) => End::Unfit(reason),
            // A panicking task drops this while its thread unwinds.
            None if thread::panicking() => End::Panicked,
            None => match self.context.as_ref().and_then(Cancellation::reason) {
                Some(CancelReason::Deadline) => End::TimedOut,
                _ => End::Unfinished,
            },
        };
        if let Some(span) = self.span.take() {
            span.end(&end);
        }
        let Self { tag, worker, delivered_before, started, .. } = *self;
        if self.session.send(Ended { tag, worker, end, delivered_before, started }).is_err() {
            // The channel is lost, and the right to answer with it.
            crate::meters::count(&self.meters.unanswered);
        }
    }
}

/// Gives a delivery to the pool. If the pool refuses it, the report is dropped, and so reports that.
pub fn start(pool: &Pool, plan: &Plan, mut delivery: Delivery, report: Report) {
    let run = Arc::clone(&plan.run);
    let span = tracing::info_span!(
        "delivery",
        queue = plan.queue,
        event_type = plan.event_type,
        worker = report.worker,
        message_id = delivery.message_id()
    );
    let make = move |context: Cancellation| {
        delivery.cancellation = context.clone();
        let work = async move {
            // A local variable of the task, so that a panic drops it.
            let mut report = report;
            report.context = Some(context);
            report.started = Some(Instant::now());
            let outcome = run(delivery).await;
            report.outcome = Some(outcome);
        };
        work.instrument(span)
    };
    // The handle is not needed: the report returns the result, and it tells a time-out from a stop.
    drop(pool.dispatch_with(make, DispatchOptions { deadline: plan.timeout }));
}
