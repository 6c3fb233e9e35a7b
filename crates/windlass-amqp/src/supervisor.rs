//! Keeps one consumer consuming: session after session until it is told to stop.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use windlass::{Pool, StopReport, backoff::Backoff};

use crate::{
    backoff::{CALM, backoff},
    connection::Link,
    consumer::Plan,
    meters::{Meters, State, count},
    session::{Over, Session, Shift, told},
};

/// One consumer with what it needs for its whole life.
pub struct Supervisor {
    pub plan: Arc<Plan>,
    pub link: Arc<Link>,
    pub pool: Pool,
    pub meters: Arc<Meters>,
    /// The deadline of the stop, once there is one.
    pub stop: watch::Receiver<Option<Duration>>,
}

impl Supervisor {
    /// Consumes until the stop, beginning with a session that is open.
    pub async fn keep(mut self, first: Session) -> StopReport {
        let mut open = Some(first);
        let mut backoff = backoff();
        let (plan, meters, pool) = (Arc::clone(&self.plan), Arc::clone(&self.meters), self.pool.clone());
        loop {
            let Some(session) = open.take() else {
                // Not reached: a session is either open or awaited below.
                return pool.stop(Duration::ZERO).await;
            };
            count(&meters.sessions);
            meters.set_state(State::Consuming);
            let began = Instant::now();
            let mut shift = Shift::new(session, &plan, &pool, &meters);
            let reason = match shift.work(&mut self.stop).await {
                Over::Lost(reason) => reason,
                Over::Stop(deadline) => {
                    meters.set_state(State::Stopping);
                    return shift.drain(deadline).await;
                }
            };
            // With it goes the way of reports from handlers that still run.
            drop(shift);
            meters.set_state(State::Reconnecting);
            let (queue, event_type) = (&plan.queue, &plan.event_type);
            tracing::warn!(%queue, %event_type, %reason, "the consumer lost its channel and opens another");
            open = match self.reopen(&mut backoff, began.elapsed()).await {
                Ok(session) => Some(session),
                Err(deadline) => {
                    meters.set_state(State::Stopping);
                    return pool.stop(deadline).await;
                }
            };
        }
    }

    /// Tries until there is a session, or a stop with its deadline.
    async fn reopen(&mut self, backoff: &mut Backoff, lasted: Duration) -> Result<Session, Duration> {
        if lasted >= CALM {
            backoff.reset();
        }
        let mut wait = backoff.next();
        loop {
            tokio::select! {
                deadline = told(&mut self.stop) => return Err(deadline),
                () = sleep(wait) => {}
            }
            let opened = tokio::select! {
                deadline = told(&mut self.stop) => return Err(deadline),
                opened = Session::open(&self.link, &self.plan) => opened,
            };
            match opened {
                Ok(session) => return Ok(session),
                Err(error) => {
                    wait = backoff.next();
                    let queue = &self.plan.queue;
                    tracing::warn!(%queue, %error, wait_ms = wait.as_millis() as u64, "the consumer is not back yet");
                }
            }
        }
    }
}
