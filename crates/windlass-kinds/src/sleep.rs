//! The kind `sleep`: does nothing for a while, for tests and first steps.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use windlass::{Context, Outcome, handler::RawHandler};

use crate::cancelled::unless_cancelled;

/// Longest sleep: a wrong unit must not hold a slot for years.
const SLEEP_MAX: Duration = Duration::from_hours(24 * 7);

/// Sleeps for `{"ms": N}` or `{"seconds": F}` and leaves no output. Ends early when cancelled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sleep;

#[async_trait]
impl RawHandler for Sleep {
    async fn call(&self, context: Context) -> Outcome {
        let duration = match context.payload().decode().and_then(|payload| duration_of(&payload)) {
            Ok(duration) => duration,
            Err(reason) => return Outcome::dead(format!("sleep: {reason}")),
        };
        unless_cancelled(context.cancelled(), async {
            tokio::time::sleep(duration).await;
            Outcome::Done(None)
        })
        .await
    }
}

/// Checks a payload of kind `sleep` before it is enqueued.
///
/// # Errors
/// What is wrong and what is expected. Of the payload it quotes field names only.
pub fn check_sleep_payload(payload: &Value) -> Result<(), String> {
    duration_of(payload).map(drop)
}

fn duration_of(payload: &Value) -> Result<Duration, String> {
    const EXPECTED: &str = "expected {\"ms\": N} or {\"seconds\": N}";
    let fields = payload.as_object().ok_or(EXPECTED)?;
    if let Some(field) = fields.keys().find(|field| !matches!(field.as_str(), "ms" | "seconds")) {
        return Err(format!("unknown field {:?}; {EXPECTED}", crate::shown(field)));
    }
    let duration = match (fields.get("ms"), fields.get("seconds")) {
        (Some(ms), None) => Duration::from_millis(ms.as_u64().ok_or("ms must be a whole number, 0 or more")?),
        (None, Some(seconds)) => seconds
            .as_f64()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or("seconds must be a number, 0 or more")?,
        _ => return Err(EXPECTED.to_owned()),
    };
    if duration > SLEEP_MAX {
        return Err(format!("a sleep may take at most {} seconds", SLEEP_MAX.as_secs()));
    }
    Ok(duration)
}
