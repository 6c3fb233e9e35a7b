//! The end of a session that was asked to end: nothing new, everything answered.

use std::time::Duration;

use lapin::options::BasicCancelOptions;
use tokio::time::{Instant, sleep_until, timeout};
use windlass::StopReport;

use super::{REPORTS_AT_ONCE, Shift, next};
use crate::{connection::short, decision::End};

/// How long the broker may take to end the subscription or the channel. It is not needed for correctness: what it was not
/// told goes back into the queue with the connection.
pub(super) const BROKER_LIMIT: Duration = Duration::from_secs(5);

impl Shift<'_> {
    /// Stops the intake, hands back what has not started, and answers for the rest as it ends; what the deadline cuts off goes
    /// back as well.
    ///
    /// Whoever has the queue to itself keeps it until then: the next one would otherwise begin with what comes after a delivery
    /// that still runs here. It ends its turn with its channel, and the broker has everything back in one step, in order.
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
                // The channel is gone: the handlers still get their time.
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

    /// Ends the subscription; what came and did not start goes back at once.
    async fn hand_back(&mut self) {
        if let Ok(tag) = short(&self.plan.tag) {
            let cancelled = self.session.channel.basic_cancel(tag, BasicCancelOptions::default());
            if !matches!(timeout(BROKER_LIMIT, cancelled).await, Ok(Ok(()))) {
                // A broker that does not answer gets everything back with the channel.
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

    /// Acks that wait for a neighbour do not wait any longer.
    async fn say_the_rest(&mut self) {
        while let Some(look) = self.ledger.next_look() {
            sleep_until(look).await;
            if self.say().await.is_err() {
                return;
            }
        }
        // Rejections need no neighbours.
        let _ = self.say().await;
    }
}
