//! Keeps one consumer running: session after session until it must stop.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use windlass::{Pool, admission::Controller, inside::Backoff, pool::StopReport};

use crate::{
    backoff::{CALM, backoff},
    connection::Link,
    consumer::{Plan, window::Window},
    meters::{Meters, State, count},
    session::{Over, Session, Shift, depth, told},
};

/// How long to wait for the depth of a queue while the consumer cannot consume from it.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

/// One consumer with all that it needs between sessions.
pub struct Supervisor {
    pub plan: Arc<Plan>,
    pub link: Arc<Link>,
    pub pool: Pool,
    pub admission: Controller,
    pub meters: Arc<Meters>,
    /// The deadline of the stop, once there is a stop.
    pub stop: watch::Receiver<Option<Duration>>,
}

impl Supervisor {
    /// Consumes until the stop, first with a session that is open.
    pub async fn keep(mut self, first: Session) -> StopReport {
        let mut open = Some(first);
        let mut backoff = backoff();
        let (plan, meters, pool) = (Arc::clone(&self.plan), Arc::clone(&self.meters), self.pool.clone());
        let admission = self.admission.clone();
        let mut window = Window::new(plan.sizes.prefetch);
        loop {
            let Some(session) = open.take() else {
                // Not reached: a session is open here, or the code below waits for one.
                return pool.stop(Duration::ZERO).await;
            };
            count(&meters.sessions);
            meters.set_state(State::Consuming);
            let began = Instant::now();
            let mut shift = Shift::new(session, &plan, (&pool, &admission), &meters, &mut window);
            let reason = match shift.work(&mut self.stop).await {
                Over::Lost(reason) => reason,
                Over::Stop(deadline) => {
                    meters.set_state(State::Stopping);
                    return shift.drain(deadline).await;
                }
            };
            // Drops the channel for reports: handlers that still run cannot report any more.
            drop(shift);
            meters.set_state(State::Reconnecting);
            meters.note_depth(None);
            let (queue, event_type) = (&plan.queue, &plan.event_type);
            tracing::warn!(%queue, %event_type, %reason, "the consumer lost its channel and opens another");
            open = match self.reopen(&mut backoff, began.elapsed(), window.current()).await {
                Ok(session) => Some(session),
                Err(deadline) => {
                    meters.set_state(State::Stopping);
                    return pool.stop(deadline).await;
                }
            };
        }
    }

    /// Retries until there is a session, or a stop with its deadline.
    async fn reopen(
        &mut self,
        backoff: &mut Backoff,
        lasted: Duration,
        prefetch: u16,
    ) -> Result<Session, Duration> {
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
                opened = Session::open(&self.link, &self.plan, prefetch) => opened,
            };
            match opened {
                Ok(session) => return Ok(session),
                Err(error) => {
                    self.meters.note_depth(self.depth().await);
                    wait = backoff.next();
                    let (queue, event_type) = (&self.plan.queue, &self.plan.event_type);
                    tracing::warn!(%queue, %event_type, %error, wait_ms = wait.as_millis() as u64, "the consumer is not back yet");
                }
            }
        }
    }

    /// How many messages wait although this consumer may not consume, for instance because another one has
    /// the sole right.
    async fn depth(&self) -> Option<u64> {
        let look = async {
            let channel = self.link.channel().await.ok()?;
            depth(channel, self.plan.queue.clone()).await.ok()
        };
        timeout(LOOK_LIMIT, look).await.ok().flatten()
    }
}
