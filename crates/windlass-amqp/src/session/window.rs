//! Changes a prefetch that is too large for the memory while the consumer runs.
//!
//! ```text
//! subscribed ─► cancelled at the broker, what came is worked off ─► subscribed with another prefetch
//! ```
//!
//! `basic.qos` on a channel affects later subscriptions only, so the old subscription ends first. The channel
//! stays open, so earlier deliveries can still be answered.

use lapin::options::BasicCancelOptions;
use tokio::time::timeout;

use super::{Shift, drain::BROKER_LIMIT, next, subscribed};
use crate::{connection::short, consumer::window::Misfit};

impl Shift<'_> {
    /// Compares the prefetch with the memory, and logs it if messages take too much (A4: more than a tenth).
    pub(super) async fn fit_window(&mut self) -> Result<(), String> {
        let memory = self.admission.memory();
        let Some(misfit) = memory.and_then(|memory| self.window.misfit(memory.limit)) else {
            self.is_excess_told = false;
            return Ok(());
        };
        if self.parked.is_some() {
            return Ok(());
        }
        // A single active consumer would lose its turn with the subscription, and an exclusive one its sole
        // right.
        let may_change = self.admission.is_on() && !self.plan.has_queue_alone();
        self.tell(misfit, may_change);
        if may_change { self.park(misfit.prefetch).await } else { Ok(()) }
    }

    fn tell(&mut self, misfit: Misfit, may_change: bool) {
        let Misfit { prefetch, current, mean_bytes } = misfit;
        let (queue, event_type) = (&self.plan.queue, &self.plan.event_type);
        if !misfit.is_excess() {
            tracing::info!(%queue, %event_type, prefetch, before = current, mean_bytes, "prefetch raised: messages became smaller");
        } else if may_change {
            tracing::warn!(%queue, %event_type, prefetch, before = current, mean_bytes,
                "prefetch lowered: messages sent ahead would take more than a tenth of the memory");
        } else if !self.is_excess_told {
            tracing::warn!(%queue, %event_type, prefetch = current, mean_bytes, fitting = prefetch,
                "messages sent ahead may take more than a tenth of the memory: lower the prefetch");
        }
        self.is_excess_told = true;
    }

    /// Ends the subscription; deliveries that have arrived are still handled.
    async fn park(&mut self, prefetch: u16) -> Result<(), String> {
        let tag = short(&self.plan.tag).map_err(|error| error.to_string())?;
        let cancelled = self.session.channel.basic_cancel(tag, BasicCancelOptions::default());
        match timeout(BROKER_LIMIT, cancelled).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("no answer within {BROKER_LIMIT:?}")),
        }
        while let Some(delivery) = next(&mut self.session.stream).await {
            self.take(Some(delivery))?;
        }
        self.parked = Some(prefetch);
        Ok(())
    }

    /// Subscribes again once few enough deliveries of the old prefetch are left: both together are never much
    /// more than the larger one.
    pub(super) async fn unpark(&mut self) -> Result<(), String> {
        let Some(prefetch) = self.parked else { return Ok(()) };
        let is_lower = prefetch < self.window.current();
        if is_lower && self.ledger.open() * 2 > usize::from(prefetch) {
            return Ok(());
        }
        self.parked = None;
        let opened = timeout(BROKER_LIMIT, subscribed(&self.session.channel, self.plan, prefetch)).await;
        self.session.stream = match opened {
            Ok(opened) => opened.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("no answer within {BROKER_LIMIT:?}")),
        };
        self.window.set(prefetch);
        self.meters.note_prefetch(prefetch);
        Ok(())
    }
}
