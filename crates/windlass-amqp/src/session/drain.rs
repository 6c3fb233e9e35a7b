//! The end of a session that must stop: it takes nothing new and answers every delivery.

use std::time::Duration;

use lapin::options::BasicCancelOptions;
use tokio::time::{Instant, sleep_until, timeout};
use windlass::pool::StopReport;

use super::{REPORTS_AT_ONCE, Shift, next};
use crate::{connection::short, session::decision::End};

/// How long the broker may take to end the subscription or the channel. Not needed for correctness:
/// deliveries without an answer return to the queue when the connection ends.
pub(super) const BROKER_LIMIT: Duration = Duration::from_secs(5);

impl Shift<'_> {
    /// Stops taking deliveries, hands back those that have not started, and answers the others as they end.
    /// Hands back those that the deadline interrupts too.
    ///
    /// A consumer that has its queue alone keeps it until then. The hazard: the next consumer would start
    /// with later messages while a handler still runs here. So it gives up the queue by closing its channel,
    /// and the broker gets all unfinished deliveries back in one step, in order.
    pub async fn drain(&mut self, deadline: Duration) -> StopReport {
        if self.plan.has_queue_alone() {
            self.hands_back_at_end = true;
        } else {
            self.hand_back().await;
        }
        let pool = self.pool;
        let mut stopping = std::pin::pin!(pool.stop(deadline));
        let mut ended = Vec::new();
        let report = loop {
            if self.say().await.is_err() {
                // The channel is lost: the handlers still get their time.
                break stopping.as_mut().await;
            }
            let look = self.ledger.next_look();
            tokio::select! {
                biased;
                _ = self.reports.recv_many(&mut ended, REPORTS_AT_ONCE) => {
                    ended.drain(..).for_each(|ended| self.note(ended));
                }
                report = stopping.as_mut() => break report,
                () = sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {}
            }
        };
        while let Ok(ended) = self.reports.try_recv() {
            self.note(ended);
        }
        self.say_the_rest().await;
        let _ = timeout(BROKER_LIMIT, self.session.channel.close(200, "done".into())).await;
        report
    }

    /// Ends the subscription and hands back at once the deliveries that did not start.
    async fn hand_back(&mut self) {
        if let Ok(tag) = short(&self.plan.tag) {
            let cancelled = self.session.channel.basic_cancel(tag, BasicCancelOptions::default());
            if !matches!(timeout(BROKER_LIMIT, cancelled).await, Ok(Ok(()))) {
                // If the broker does not answer, the closing channel returns everything.
                return;
            }
        }
        while let Some(Ok(Some(delivery))) = next(&mut self.session.stream).await {
            if self.take(Some(Ok(Some(delivery)))).is_err() {
                break;
            }
        }
        while let Some(waiting) = self.buffer.pop_front() {
            self.answer(waiting.tag, 0, End::Unfinished, waiting.delivery.delivered_before());
        }
    }

    /// Sends acks now that still wait for earlier deliveries.
    async fn say_the_rest(&mut self) {
        while let Some(look) = self.ledger.next_look() {
            sleep_until(look).await;
            if self.say().await.is_err() {
                return;
            }
        }
        // Rejections do not wait for other deliveries.
        let _ = self.say().await;
    }
}
