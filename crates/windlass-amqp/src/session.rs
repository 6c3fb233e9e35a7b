//! A session of a consumer: from the opening of its channel to its end.
//!
//! ```text
//! broker ─► lapin (≤ prefetch) ─► buffer (≤ workers × 2) ─► pool ─► handler ─► report
//!                                                      broker ◄─ frames ◄─ ledger ◄──┘
//! ```
//!
//! Everything here ends with the channel. A handler that still runs then cannot report any more: its result
//! must not be acknowledged on the next channel, so the broker delivers the message again.

pub(crate) mod decision;
mod drain;
pub(crate) mod ledger;
mod looks;
mod saying;
mod settled;
mod window;
pub(crate) mod work;

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

pub use self::looks::depth;
use self::{
    decision::{End, decide, refuse},
    ledger::{Answer, Ledger},
    looks::{Looks, Tuning},
    saying::{Said, Saying},
    settled::Settled,
    work::{Ended, Report, start},
};
use futures_core::Stream;
use lapin::{
    Channel,
    options::{BasicConsumeOptions, BasicQosOptions},
    types::FieldTable,
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    time::{Instant, sleep_until},
};
use windlass::{Pool, admission::Controller, inside::Line, trace::Begun};

use crate::{
    Delivery, Error,
    connection::Link,
    consumer::{Plan, window::Window},
    meters::{Meters, count},
    span,
};

/// Places in the buffer per worker: enough to have the next delivery ready.
pub const BUFFERED_PER_WORKER: usize = 2;
/// Most reports that are taken at once; those that come while frames are written wait for the next batch.
const REPORTS_AT_ONCE: usize = 256;
/// How long to collect reports after a batch, while no delivery waits for a worker.
const GATHER: Duration = Duration::from_millis(1);

/// Why a session ends.
#[derive(Debug)]
pub enum Over {
    /// The consumer must stop within this time.
    Stop(Duration),
    /// The channel is lost.
    Lost(String),
}

/// A subscribed channel.
#[derive(Debug)]
pub struct Session {
    channel: Channel,
    stream: lapin::Consumer,
}

impl Session {
    /// Declares, sets the prefetch and subscribes.
    pub async fn open(link: &Link, plan: &Plan, prefetch: u16) -> Result<Self, Error> {
        let channel = link.channel().await?;
        let what = || format!("the consumer of queue {:?}", plan.queue);
        let opened = subscribed(&channel, plan, prefetch).await;
        let stream = opened.map_err(|error| link.lost(&what(), &error))?;
        Ok(Self { channel, stream })
    }
}

/// Sets the prefetch and subscribes with it.
async fn subscribed(channel: &Channel, plan: &Plan, prefetch: u16) -> lapin::Result<lapin::Consumer> {
    // A prefetch of 0 means no limit: the broker would send the whole queue.
    channel.basic_qos(prefetch.max(1), BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions { exclusive: plan.is_exclusive, ..BasicConsumeOptions::default() };
    // Both were checked by the plan.
    let (queue, tag) = (plan.queue.as_str().into(), plan.tag.as_str().into());
    channel.basic_consume(queue, tag, options, FieldTable::default()).await
}

/// A delivery that waits for a worker.
pub struct Waiting {
    pub tag: u64,
    pub delivery: Delivery,
    pub since: Instant,
    pub span: Option<Begun>,
}

/// A running session.
pub struct Shift<'a> {
    plan: &'a Plan,
    pool: &'a Pool,
    meters: &'a Arc<Meters>,
    admission: &'a Controller,
    session: Session,
    ledger: Ledger,
    buffer: VecDeque<Waiting>,
    /// Numbers of the workers without a delivery.
    idle: Vec<usize>,
    looks: Looks,
    tuning: Option<Tuning>,
    /// It outlives the session, because the sizes of messages are useful for the next one.
    window: &'a mut Window,
    /// The prefetch of the next subscription, while there is none.
    parked: Option<u16>,
    /// Whether the log says that the prefetch is too large.
    is_excess_told: bool,
    /// Whether deliveries wait only because admission control allows no more.
    is_held: bool,
    settled: Settled,
    saying: Saying,
    reporter: UnboundedSender<Ended>,
    reports: UnboundedReceiver<Ended>,
    gather_until: Instant,
    /// Return unfinished deliveries when the channel closes, not before.
    hands_back_at_end: bool,
}

impl<'a> Shift<'a> {
    pub fn new(
        session: Session,
        plan: &'a Plan,
        (pool, admission): (&'a Pool, &'a Controller),
        meters: &'a Arc<Meters>,
        window: &'a mut Window,
    ) -> Self {
        let (reporter, reports) = unbounded_channel();
        let looks = Looks::new(&session.channel, plan);
        let tuning = plan.adaptive_min.map(|min| Tuning::new(min, plan.sizes.workers, meters));
        let limit = tuning.as_ref().map_or(plan.sizes.workers, Tuning::limit);
        meters.limit.store(limit as u64, Ordering::Relaxed);
        meters.note_prefetch(window.current());
        Self {
            plan,
            pool,
            meters,
            admission,
            session,
            ledger: Ledger::default(),
            buffer: VecDeque::new(),
            idle: (0..plan.sizes.workers).rev().collect(),
            looks,
            tuning,
            window,
            parked: None,
            is_excess_told: false,
            is_held: false,
            settled: Settled::default(),
            saying: Saying::default(),
            reporter,
            reports,
            gather_until: Instant::now(),
            hands_back_at_end: false,
        }
    }

    /// Works until the channel is lost or the consumer must stop; [`drain`](Self::drain) comes next.
    ///
    /// Not cancel safe. It checks for the stop only between two turns, when no answer is partly sent.
    pub async fn work(&mut self, stop: &mut watch::Receiver<Option<Duration>>) -> Over {
        let mut ended = Vec::new();
        loop {
            if let Err(reason) = self.turn().await {
                return self.end(reason);
            }
            // While frames are being written no more can be sent, however late an ack is.
            let look = self.ledger.next_look().filter(|_| !self.saying.is_busy());
            let is_waiting_for_others = self.is_held || (!self.buffer.is_empty() && self.is_idle());
            let is_gathering = self.is_gathering();
            tokio::select! {
                deadline = told(stop) => return Over::Stop(deadline),
                _ = self.reports.recv_many(&mut ended, REPORTS_AT_ONCE), if !is_gathering => {
                    ended.drain(..).for_each(|ended| self.note(ended));
                    self.gather_until = Instant::now() + GATHER;
                }
                () = sleep_until(self.gather_until), if is_gathering => {}
                next = next(&mut self.session.stream), if self.has_room() => {
                    if let Err(reason) = self.take(next) {
                        return self.end(reason);
                    }
                }
                said = self.saying.written(), if self.saying.is_busy() => {
                    if let Err(reason) = self.said(said) {
                        return self.end(reason);
                    }
                }
                // A handler that an earlier session left in the pool has ended, or admission control allows
                // more.
                () = self.pool.freed(), if is_waiting_for_others => {}
                waiting = self.looks.next() => {
                    let done = match waiting {
                        Ok(waiting) => self.looked(waiting).await,
                        Err(reason) => Err(reason),
                    };
                    if let Err(reason) = done {
                        return self.end(reason);
                    }
                }
                () = sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {}
            }
        }
    }

    /// Takes deliveries that have arrived, starts as many as may run, and starts to send answers.
    async fn turn(&mut self) -> Result<(), String> {
        while self.has_room() {
            let Some(next) = ready(&mut self.session.stream).await else { break };
            self.take(next)?;
        }
        self.start_what_fits();
        self.speak();
        if let Some(said) = self.saying.look().await {
            self.said(said)?;
        }
        self.unpark().await
    }

    /// Whether to collect reports: one turn for many of them costs less than one for each. Not while a
    /// delivery waits for a worker, nor while the broker may wait for acks.
    fn is_gathering(&self) -> bool {
        self.buffer.is_empty()
            && self.ledger.len() * 2 < usize::from(self.window.current())
            && Instant::now() < self.gather_until
    }

    fn has_room(&self) -> bool {
        self.parked.is_none() && self.buffer.len() < self.plan.sizes.workers * BUFFERED_PER_WORKER
    }

    /// Whether no handler of this session runs.
    fn is_idle(&self) -> bool {
        self.idle.len() == self.plan.sizes.workers
    }

    fn take(&mut self, next: Option<lapin::message::DeliveryResult>) -> Result<(), String> {
        let delivery = match next {
            Some(Ok(Some(delivery))) => delivery,
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(None)) | None => return Err("the broker ended the subscription".to_owned()),
        };
        count(&self.meters.deliveries);
        if delivery.redelivered {
            count(&self.meters.redeliveries);
        }
        let tag = delivery.delivery_tag;
        self.ledger.take(tag);
        let delivery = Delivery::new(delivery);
        self.window.note(delivery.body().len());
        let span = self.plan.tracer.as_ref().and_then(|tracer| tracer.begin(delivery.trace()));
        self.buffer.push_back(Waiting { tag, delivery, since: Instant::now(), span });
        Ok(())
    }

    fn start_what_fits(&mut self) {
        self.is_held = false;
        while !self.buffer.is_empty() && self.is_place_free() {
            let Some(worker) = self.idle.pop() else { break };
            let Some(Waiting { tag, mut delivery, since, span }) = self.buffer.pop_front() else { break };
            self.meters.times.waited(since.elapsed());
            let known = (tag, delivery.delivered_before());
            let mut report = Report::new(self.reporter.clone(), Arc::clone(self.meters), known, worker);
            report.span = span::started(span, self.plan, &mut delivery, worker);
            match self.misfit(&delivery) {
                None => start(self.pool, self.plan, delivery, report),
                Some(reason) => report.refuse(reason),
            }
        }
    }

    /// Counts handlers of an earlier session too: together they are never more than the workers, nor more
    /// than admission control allows. Deliveries that may not start stay in the buffer, then at the broker,
    /// which sends no more than the prefetch.
    fn is_place_free(&mut self) -> bool {
        let running = self.meters.running.load(Ordering::Relaxed);
        if running >= self.meters.limit.load(Ordering::Relaxed) {
            return false;
        }
        self.is_held = running >= self.pool.allowed() as u64;
        if self.is_held {
            self.pool.held_up();
        }
        !self.is_held
    }

    /// Why a delivery is not handled, if so.
    fn misfit(&self, delivery: &Delivery) -> Option<String> {
        let (plan, got) = (self.plan, delivery.event_type());
        if plan.is_strict && got != Some(plan.event_type.as_str()) {
            return Some(format!("its type is {got:?}, not {:?}", plan.event_type));
        }
        refuse(delivery.delivered_before(), plan.redelivery)
    }

    fn note(&mut self, ended: Ended) {
        let Ended { tag, worker, end, delivered_before, started } = ended;
        self.settled.ended(self.plan, tag, started);
        self.idle.push(worker);
        self.answer(tag, worker, end, delivered_before);
    }

    fn answer(&mut self, tag: u64, worker: usize, end: End, delivered_before: u32) {
        let is_handed_back = end == End::Unfinished;
        if is_handed_back && self.hands_back_at_end {
            return;
        }
        let decision = decide(end, delivered_before, self.plan.redelivery);
        if !self.ledger.answer(tag, decision.answer, Instant::now()) {
            return;
        }
        self.meters.answered(decision.answer);
        let Some(reason) = decision.reason.filter(|_| !is_handed_back) else { return };
        let (queue, event_type) = (&self.plan.queue, &self.plan.event_type);
        match self.meters.failures.event(std::time::Instant::now()) {
            Line::None => return,
            Line::OwnAfter(count) => {
                tracing::warn!(%queue, %event_type, count, "more deliveries failed in the last minute");
            }
            Line::Own => {}
        }
        let what = if decision.answer == Answer::Reject { "rejected" } else { "put back" };
        tracing::warn!(%queue, %event_type, worker, tag, %reason, "a delivery was {what}");
    }

    /// Starts to write the answers, unless a write is under way; returns whether it did.
    fn speak(&mut self) -> bool {
        if self.saying.is_busy() {
            return false;
        }
        let frames = self.ledger.frames(Instant::now());
        let has_begun = !frames.is_empty();
        if has_begun {
            self.saying.begin(&self.session.channel, frames);
        }
        has_begun
    }

    fn said(&mut self, said: Said) -> Result<(), String> {
        for frame in said? {
            self.settled.said(self.plan, frame);
        }
        Ok(())
    }

    /// Writes all answers.
    async fn say(&mut self) -> Result<(), String> {
        loop {
            if self.saying.is_busy() {
                let said = self.saying.written().await;
                self.said(said)?;
            }
            if !self.speak() {
                return Ok(());
            }
        }
    }

    /// The channel is lost: drops the waiting deliveries, because the broker has returned them to the queue.
    fn end(&mut self, reason: String) -> Over {
        self.reports.close();
        while self.reports.try_recv().is_ok() {
            count(&self.meters.unanswered);
        }
        self.buffer.clear();
        Over::Lost(reason)
    }
}

/// Waits for the stop and returns its deadline. A dropped handle stops at once. Cancel safe.
pub async fn told(stop: &mut watch::Receiver<Option<Duration>>) -> Duration {
    match stop.wait_for(Option::is_some).await {
        Ok(deadline) => deadline.unwrap_or_default(),
        Err(_) => Duration::ZERO,
    }
}

type Next = Option<lapin::message::DeliveryResult>;

/// The next delivery. Cancel safe.
async fn next(stream: &mut lapin::Consumer) -> Next {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await.map(|next| next.map(Some))
}

/// The next delivery, if one has arrived already.
async fn ready(stream: &mut lapin::Consumer) -> Option<Next> {
    std::future::poll_fn(|cx| match Pin::new(&mut *stream).poll_next(cx) {
        Poll::Ready(next) => Poll::Ready(Some(next.map(|next| next.map(Some)))),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
