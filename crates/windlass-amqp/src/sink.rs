//! Where the tasks of a bridge go.

use std::{pin::Pin, sync::Arc};

use windlass::{Client, Error, NewTask};

/// An enqueue on its way.
pub type Enqueuing<'a> = Pin<Box<dyn Future<Output = windlass::Result<()>> + Send + 'a>>;

/// Takes the tasks of a bridge: a store, through its [`Client`], or a server that has the store.
pub trait Sink: Send + Sync + 'static {
    /// Enqueues a task under a key, if it has one, and answers once that is committed.
    fn enqueue<'a>(&'a self, task: NewTask, key: Option<&'a str>) -> Enqueuing<'a>;
}

/// One that several bridges share.
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

/// Whether an enqueue failed because of what the message is. Anything else passes, or is the store's own trouble, and the message
/// must not be given up for it.
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
    fn message_is_given_up_for_what_it_is_and_not_for_what_the_store_is() {
        assert!(is_the_messages_fault(&Error::invalid("too large")));
        for error in
            [Error::Fatal("fsync".into()), Error::Unknown("lost".into()), Error::StoreFull("1 %".into())]
        {
            assert!(!is_the_messages_fault(&error), "{error}");
        }
    }
}
