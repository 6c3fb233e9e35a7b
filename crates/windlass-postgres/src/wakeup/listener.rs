//! The listener: the connection on which a process receives notifications.

use std::{sync::Arc, time::Duration};

use tokio_postgres::AsyncMessage;
use windlass_core::{LeaseRef, TaskId};

use crate::{
    connection::{conn::Server, driver::Driver, error::text_of, reach::Refusal},
    shared::{Shared, Weakly},
    wakeup::offer::{self, PrivateChannel},
};

/// Pauses between attempts to listen again.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// The longest of these pauses. It is short because the listener also tells this process that the server is
/// back.
const RETRY_MAX: Duration = Duration::from_millis(250);
/// The longest pause while the server has no connection left.
const FULL_RETRY_MAX: Duration = Duration::from_secs(2);

/// Listens until the store is dropped. After each subscription it tells every worker of this process to look:
/// notifications that were sent before it did not arrive.
pub(crate) async fn listen(shared: Weakly, server: Arc<Server>, driver: Arc<Driver>) {
    let mut pause = RETRY_MIN;
    loop {
        match listen_once(&shared, &server, &driver).await {
            Ok(()) => return,
            Err(Ended { reason, was_up }) => {
                let Some(shared) = shared.upgrade() else { return };
                shared.doorbell.lost();
                shared.offers.listens(None);
                let longest = if reason.is_full { FULL_RETRY_MAX } else { RETRY_MAX };
                pause = if was_up { RETRY_MIN } else { (pause * 2).min(longest) };
                tracing::debug!(reason = reason.text, again_in = ?pause, "not listening; workers poll meanwhile");
            }
        }
        let Some(server) = shared.upgrade().map(|shared| Arc::clone(&shared.server)) else { return };
        server.reach.back_within(pause).await;
    }
}

struct Ended {
    reason: Refusal,
    was_up: bool,
}

async fn listen_once(
    shared: &Weakly,
    server: &Arc<Server>,
    driver: &Arc<Driver>,
) -> std::result::Result<(), Ended> {
    let down = |reason| Ended { reason, was_up: false };
    let ended = |text: String, was_up| Ended { reason: Refusal::new(text), was_up };
    let (client, mut connection) = server.dial(driver, "listen").await.map_err(down)?;
    let channel = shared.upgrade().map(|shared| shared.doorbell.channel.clone()).unwrap_or_default();
    // Each connection gets a channel of its own: the server may still serve the session of an older
    // connection that has broken.
    let private = PrivateChannel::new();
    let mut subscribe = std::pin::pin!(async {
        // Without the private channel there are notifications, and no offers.
        let is_open = match &private {
            Some(private) => private.open(&client).await.is_ok(),
            None => false,
        };
        // This is the last statement, so that the server's list of sessions shows what this session is for.
        client.batch_execute(&format!("LISTEN \"{channel}\"")).await.map(|()| is_open)
    });
    let mut is_subscribed = false;
    loop {
        let message = tokio::select! {
            answer = &mut subscribe, if !is_subscribed => {
                let is_open = answer.map_err(|error| ended(text_of(&error), false))?;
                is_subscribed = true;
                let Some(shared) = shared.upgrade() else { return Ok(()) };
                shared.server.reach.connected();
                shared.doorbell.listens();
                shared.offers.listens(private.clone().filter(|_| is_open));
                shared.lanes.mark_stale();
                shared.subscribers.tell_lanes();
                continue;
            }
            message = std::future::poll_fn(|cx| connection.poll_message(cx)) => message,
            () = shared.closed() => return Ok(()),
        };
        match message {
            Some(Ok(AsyncMessage::Notification(note))) => {
                let Some(shared) = shared.upgrade() else { return Ok(()) };
                if private.as_ref().is_some_and(|private| private.name == note.channel()) {
                    shared.doorbell.notified();
                    offer::arrived(&shared, note.payload());
                } else {
                    received(&shared, note.payload());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(ended(text_of(&error), is_subscribed)),
            None => return Err(ended("the server closed the connection".to_owned(), is_subscribed)),
        }
    }
}

/// What a notification says: the number of one listener, `*` for all, `lanes`, or `cancel TASK LEASE REASON`.
fn received(shared: &Shared, text: &str) {
    if text == "lanes" {
        shared.lanes.mark_stale();
        shared.subscribers.tell_lanes();
    } else if text == "*" {
        shared.doorbell.notified();
        shared.tell_ready();
    } else if let Some(rest) = text.strip_prefix("cancel ") {
        let mut parts = rest.splitn(3, ' ');
        let id = parts.next().and_then(|id| id.parse().ok()).map(TaskId::from_raw);
        let lease = parts.next().and_then(|lease| lease.parse().ok());
        if let (Some(id), Some(lease), Some(reason)) = (id, lease, parts.next()) {
            shared.subscribers.tell(|unread| unread.cancel(LeaseRef { id, lease }, reason));
        }
    } else if text.parse() == Ok(shared.doorbell.listener) {
        shared.doorbell.notified();
        shared.tell_ready();
    }
}
