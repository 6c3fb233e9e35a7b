//! Many simultaneous calls of one handler.

use std::{any::Any, collections::BTreeMap, future::Future};

use tokio::task::JoinSet;

/// How one call of a handler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call<R> {
    /// It returned this.
    Returned(R),
    /// It panicked with this message.
    Panicked(String),
}

impl<R> Call<R> {
    /// The return value, if the call did not panic.
    pub fn returned(&self) -> Option<&R> {
        match self {
            Self::Returned(result) => Some(result),
            Self::Panicked(_) => None,
        }
    }

    /// The message of the panic, if there was one.
    pub fn panicked(&self) -> Option<&str> {
        match self {
            Self::Returned(_) => None,
            Self::Panicked(message) => Some(message),
        }
    }
}

/// Calls a handler once per payload, all calls at once, each on its own task, and collects their results in
/// the order of the payloads.
///
/// A handler with a context or states goes into a closure:
///
/// ```
/// use windlass::{Context, State, Task, testing};
///
/// #[derive(serde::Serialize, serde::Deserialize, Task)]
/// struct Halve(u32);
///
/// async fn halve(Halve(n): Halve, _ctx: Context, State(max): State<u32>) -> Result<u32, String> {
///     assert!(n <= max, "{n} is too large");
///     if n % 2 == 0 { Ok(n / 2) } else { Err(format!("{n} is odd")) }
/// }
///
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let calls = testing::call_many(
///     |task: Halve| async move {
///         let context = testing::context(&task).map_err(|error| error.to_string())?;
///         halve(task, context, State(100)).await
///     },
///     [Halve(8), Halve(7), Halve(200)],
/// )
/// .await;
/// assert_eq!(calls[0].returned(), Some(&Ok(4)));
/// assert_eq!(calls[1].returned(), Some(&Err("7 is odd".to_owned())));
/// assert_eq!(calls[2].panicked(), Some("200 is too large"));
/// # Ok(()) }
/// ```
pub async fn call_many<H, P, F>(handler: H, payloads: impl IntoIterator<Item = P>) -> Vec<Call<F::Output>>
where
    H: Fn(P) -> F + Clone + Send + 'static,
    P: Send + 'static,
    F: Future<Output: Send + 'static> + Send,
{
    let mut running = JoinSet::new();
    let mut places = BTreeMap::new();
    for (place, payload) in payloads.into_iter().enumerate() {
        let handler = handler.clone();
        // The call itself is inside too: a panic before the first await counts as a panic of the handler.
        let task = running.spawn(async move { handler(payload).await });
        places.insert(task.id(), place);
    }
    let mut ended = BTreeMap::new();
    while let Some(joined) = running.join_next_with_id().await {
        let (id, call) = match joined {
            Ok((id, result)) => (id, Call::Returned(result)),
            Err(error) => (error.id(), Call::Panicked(panic_text(error))),
        };
        ended.extend(places.get(&id).map(|place| (*place, call)));
    }
    ended.into_values().collect()
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the call was cancelled".to_owned() };
    let panic: &(dyn Any + Send) = &*panic;
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}
