//! The panic guard: turns a panic into a value.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Runs a future; a panic in it is the error, with its message.
pub(crate) async fn catch_panic<T>(
    mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>,
) -> Result<T, String> {
    std::future::poll_fn(move |cx| poll_guarded(future.as_mut(), cx)).await
}

/// Polls once. Unwind safe as long as a future that panicked is never polled again, only dropped.
pub(crate) fn poll_guarded<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, String>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
        Ok(polled) => Poll::Ready(Ok(ready!(polled))),
        Err(panic) => Poll::Ready(Err(panic_message(panic))),
    }
}

/// The text of a panic.
pub(crate) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => match panic.downcast::<&'static str>() {
            Ok(message) => (*message).to_owned(),
            // Its destructor is the user's code too, and a panic there would be caught nowhere.
            Err(unknown) => {
                std::mem::forget(unknown);
                "no message".to_owned()
            }
        },
    }
}
