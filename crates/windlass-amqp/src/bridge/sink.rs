//! Where a bridge enqueues its tasks.

use std::{pin::Pin, sync::Arc};

use windlass::{Client, Error, NewTask};

/// An enqueue on its way.
pub type Enqueuing<'a> = Pin<Box<dyn Future<Output = windlass::Result<()>> + Send + 'a>>;

/// Enqueues the tasks of a bridge: into a store through its [`Client`], or through a server.
pub trait Sink: Send + Sync + 'static {
    /// Enqueues a task, under a key if it has one, and answers after the commit.
    fn enqueue<'a>(&'a self, task: NewTask, key: Option<&'a str>) -> Enqueuing<'a>;
}

/// A sink that several bridges share.
pub type SharedSink = Arc<dyn Sink>;

impl Sink for SharedSink {
    fn enqueue<'a>(&'a self, task: NewTask, key: Option<&'a str>) -> Enqueuing<'a> {
        (**self).enqueue(task, key)
    }
}

impl Sink for Client {
    fn enqueue<'a>(&'a self, task: NewTask, key: Option<&'a str>) -> Enqueuing<'a> {
        Box::pin(async move {
            let mut enqueue = self.enqueue_raw(task);
            if let Some(key) = key {
                enqueue = enqueue.key(key);
            }
            enqueue.await.map(drop)
        })
    }
}

/// Whether an enqueue failed because of the message itself. Other errors are temporary or the store's own,
/// and the message must not be rejected for them.
pub fn is_the_messages_fault(error: &Error) -> bool {
    match error {
        Error::Invalid(_)
        | Error::NotFound(_)
        | Error::Conflict(_)
        | Error::KeyConflict { .. }
        | Error::Unsupported(_) => true,
        Error::Unavailable(_)
        | Error::Unknown(_)
        | Error::StoreFull(_)
        | Error::LeaseLost(_)
        | Error::WorkerExpired
        | Error::Fatal(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_message_itself_reject_it() {
        assert!(is_the_messages_fault(&Error::invalid("too large")));
        for error in
            [Error::Fatal("fsync".into()), Error::Unknown("lost".into()), Error::StoreFull("1 %".into())]
        {
            assert!(!is_the_messages_fault(&error), "{error}");
        }
    }
}
