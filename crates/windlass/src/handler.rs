//! Handlers: plain async functions as applications write them, and the untyped form that the executor calls.
//!
//! Three bounds at `handle(…)` give three different messages: [`Handler`] for the arguments,
//! [`Task`](crate::Task) for the payload, [`IntoOutcome`] for the return type. One bound for all could not
//! say which is wrong.

pub(crate) mod cancel;
pub(crate) mod context;
pub mod extract;
pub(crate) mod layer;
pub(crate) mod registry;

use std::{error::Error as StdError, future::Future, marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
#[doc(inline)]
pub use windlass_core::Outcome;

pub use self::{
    cancel::{CancelReason, Cancellation},
    context::Context,
    extract::State,
    layer::{Layer, LayerFuture, Next},
    registry::Registry,
};

/// The untyped handler of a kind: it reads [`Context::payload`] itself.
///
/// Most handlers are plain async functions registered with `Worker::builder(…).handle(…)`; this trait is for
/// code that serves kinds known only at run time.
#[async_trait]
pub trait RawHandler: Send + Sync + 'static {
    /// Runs one attempt. A panic is caught and counts as a failed attempt.
    async fn call(&self, context: Context) -> Outcome;
}

/// An error of any type, as a handler may return it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A function with the arguments of a handler: the payload, then optionally a [`Context`], then up to three
/// [`State`]s.
///
/// Implemented for functions and closures; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have the arguments of a Windlass handler",
    label = "not a handler",
    note = "a handler is `async fn(payload)`, `async fn(payload, Context)`, `async fn(payload, State<A>)` or \
            `async fn(payload, Context, State<A>, State<B>, State<C>)`: the payload first, then the context, \
            then the states"
)]
pub trait Handler<Args>: Send + Sync + 'static {
    /// The payload type.
    type Payload;
    /// The states that it needs, as a tuple.
    type States;
    /// What a call returns: a future, if the function is async.
    type Called;

    /// Starts one attempt.
    fn call(&self, payload: Self::Payload, context: Context, states: Self::States) -> Self::Called;
}

macro_rules! handler {
    ([$($context:ident)?], $($state:ident $value:ident),*) => {
        impl<F, P, Called, $($state),*> Handler<(P, $($context,)? $(State<$state>,)*)> for F
        where
            F: Fn(P, $($context,)? $(State<$state>,)*) -> Called + Send + Sync + 'static,
        {
            type Payload = P;
            type States = ($($state,)*);
            type Called = Called;

            fn call(&self, payload: P, context: Context, ($($value,)*): Self::States) -> Called {
                handler!(@call self, payload, context, [$($context)?], $($value),*)
            }
        }
    };
    (@call $f:ident, $payload:ident, $context:ident, [], $($value:ident),*) => {{
        drop($context);
        $f($payload, $(State($value),)*)
    }};
    (@call $f:ident, $payload:ident, $context:ident, [Context], $($value:ident),*) => {
        $f($payload, $context, $(State($value),)*)
    };
}

handler!([],);
handler!([], A a);
handler!([], A a, B b);
handler!([], A a, B b, C c);
handler!([Context],);
handler!([Context], A a);
handler!([Context], A a, B b);
handler!([Context], A a, B b, C c);

/// The return value of an async function. Implemented for every future.
#[diagnostic::on_unimplemented(
    message = "a Windlass handler is async; this one returns `{Self}`",
    label = "not an async function",
    note = "write `async fn`"
)]
pub trait AsyncCall {
    /// What the function returns.
    type Returns;
    /// The future itself.
    type Future: Future<Output = Self::Returns>;

    /// The future itself.
    fn into_future(self) -> Self::Future;
}

// The compiler then reports "not async" in our words, not a missing `Future`.
#[diagnostic::do_not_recommend]
impl<F: Future> AsyncCall for F {
    type Returns = F::Output;
    type Future = F;

    fn into_future(self) -> F {
        self
    }
}

/// What a handler may return: `Result<impl Into<Outcome>, E>`, an [`Outcome`], or nothing.
///
/// `Err` is a failed attempt, retried with the error's text and the texts of its sources. A decision that is
/// not a failure (snooze, cancel, dead) is an `Ok(Outcome::…)`.
#[diagnostic::on_unimplemented(
    message = "a Windlass handler cannot return `{Self}`",
    label = "the handler returns `{Self}`",
    note = "return `Result<R, E>` where `R` is `()`, `Payload` or `Outcome` and `E` converts into \
            `Box<dyn Error + Send + Sync>`; `Outcome::done(&value)` leaves a value behind"
)]
pub trait IntoOutcome {
    /// The end of the attempt.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done(None)
    }
}

// The compiler then reports the whole `Result`, with the note above, not a missing `From`.
#[diagnostic::do_not_recommend]
impl<R: Into<Outcome>, E: Into<BoxError>> IntoOutcome for Result<R, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(result) => result.into(),
            Err(error) => Outcome::retry(text_with_sources(&*error.into())),
        }
    }
}

/// The text of an error and of its causes; a cause that its parent already quotes is not repeated.
fn text_with_sources(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A typed handler with its states, behind the untyped trait.
struct Typed<H: Handler<Args>, Args> {
    handler: H,
    states: H::States,
    args: PhantomData<fn(Args)>,
}

/// Puts a typed handler behind the untyped trait.
pub(crate) fn erase<H, Args>(handler: H, states: H::States) -> Arc<dyn RawHandler>
where
    H: Handler<Args>,
    H::Payload: DeserializeOwned + Send,
    H::States: Clone + Send + Sync + 'static,
    H::Called: AsyncCall<Returns: IntoOutcome, Future: Send>,
    Args: 'static,
{
    Arc::new(Typed { handler, states, args: PhantomData })
}

#[async_trait]
impl<H, Args> RawHandler for Typed<H, Args>
where
    H: Handler<Args>,
    H::Payload: DeserializeOwned + Send,
    H::States: Clone + Send + Sync + 'static,
    H::Called: AsyncCall<Returns: IntoOutcome, Future: Send>,
    Args: 'static,
{
    async fn call(&self, context: Context) -> Outcome {
        let payload = match context.payload().decode() {
            Ok(payload) => payload,
            // Retry, not dead at once: in a rolling deploy the next worker may know this format.
            Err(reason) => return Outcome::retry(format!("payload does not decode: {reason}")),
        };
        let called = self.handler.call(payload, context, self.states.clone());
        called.into_future().await.into_outcome()
    }
}
