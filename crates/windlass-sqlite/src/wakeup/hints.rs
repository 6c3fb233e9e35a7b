//! What a commit of the writer tells the workers of this process.

use windlass_core::source::hints::Subscribers;

use crate::connection::tx::Effects;

/// Tells every subscriber that tasks become ready, while the commit still runs. A claim that arrives now is
/// served right after the commit, so the wake-up adds no latency. If the commit fails, the hint was false,
/// which does no harm.
pub(crate) fn publish_early(subscribers: &Subscribers, effects: &Effects) {
    let is_ready = effects.ready || effects.resumed;
    if is_ready || effects.lanes || effects.due.is_some() {
        subscribers.tell(|unread| {
            if is_ready {
                unread.ready();
            }
            if effects.lanes {
                unread.lanes();
            }
            if let Some(due) = effects.due {
                unread.due(due);
            }
        });
    }
}

/// Tells every subscriber which attempts should end. Only after the commit, because a worker cannot take it
/// back.
pub(crate) fn publish_cancels(subscribers: &Subscribers, effects: &Effects) {
    if !effects.cancels.is_empty() {
        subscribers.tell(|unread| {
            for (_, lease, reason) in &effects.cancels {
                unread.cancel(*lease, reason);
            }
        });
    }
}
