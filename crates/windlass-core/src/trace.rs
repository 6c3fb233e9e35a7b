//! Where a task stands in a distributed trace: the W3C trace context that it carries, and the spans that
//! describe it.
//!
//! ```text
//! caller's span ─► enqueue ─► claim ─► run ─► settle      one trace; each is the parent of the next
//! ```
//!
//! This module parses and writes the context for every carrier: an HTTP header, a message's header, a stored
//! task.

use std::{fmt, str::FromStr, time::SystemTime};

/// The name of the header that carries a [`TraceContext`].
pub const TRACEPARENT: &str = "traceparent";
/// The name of the header in which tracing systems carry their own data. It is passed on unchanged with a
/// `traceparent`.
pub const TRACESTATE: &str = "tracestate";

/// A place in a trace: what `traceparent` says.
///
/// ```
/// use windlass_core::trace::TraceContext;
///
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context: TraceContext = text.parse()?;
/// assert!(context.sampled);
/// assert_eq!(context.to_string(), text);
/// # Ok::<(), windlass_core::trace::ParseTraceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace; never zero.
    pub trace_id: u128,
    /// The parent of the next span; never zero.
    pub span_id: u64,
    /// Whether a collector keeps the spans of this trace.
    pub sampled: bool,
}

/// The text is not a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent: expected 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, in lower case")]
pub struct ParseTraceError;

/// Bytes of the form of version 00; later versions start with the same.
const TEXT_LEN: usize = 55;

impl FromStr for TraceContext {
    type Err = ParseTraceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (head, rest) = text.split_at_checked(TEXT_LEN).ok_or(ParseTraceError)?;
        let mut parts = head.split('-');
        let mut part = |digits: usize| {
            parts
                .next()
                .filter(|part| part.len() == digits && part.bytes().all(is_digit))
                .ok_or(ParseTraceError)
        };
        let (version, trace_id, span_id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let is_whole = match version {
            "ff" => false,
            "00" => rest.is_empty(),
            // A later version may add more after the known part.
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let trace_id = u128::from_str_radix(trace_id, 16).map_err(|_| ParseTraceError)?;
        let span_id = u64::from_str_radix(span_id, 16).map_err(|_| ParseTraceError)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| ParseTraceError)?;
        if !is_whole || trace_id == 0 || span_id == 0 {
            return Err(ParseTraceError);
        }
        Ok(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

impl TraceContext {
    /// A context from a store or a message. An invalid one is ignored, so that its task can run.
    pub fn from_stored(text: Option<&str>) -> Option<Self> {
        text?.parse().ok()
    }
}

/// The kind of a span, as OpenTelemetry defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside the process.
    Internal,
    /// A task is enqueued.
    Producer,
    /// A task that was enqueued is run.
    Consumer,
}

/// A value that a span carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
}

/// A finished piece of work. It never carries a payload or a handler's error text, which may quote a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Its trace and its own number.
    pub context: TraceContext,
    /// The span that it is a child of; `None` for the first of a trace.
    pub parent: Option<u64>,
    /// Its name, such as `run email.send`.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// When it began, by this machine's clock.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
    /// Its attributes.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, if it did.
    pub failure: Option<&'static str>,
}

/// Receives spans. An implementation must not block and must have a bound, because workers call it while
/// tasks run.
pub trait SpanSink: Send + Sync + 'static {
    /// Takes a span, or counts it as lost.
    fn record(&self, span: Span);

    /// How many spans were exported and lost so far.
    fn counts(&self) -> SpanCounts {
        SpanCounts::default()
    }
}

/// How many spans were exported and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanCounts {
    /// Spans that were exported.
    pub exported: u64,
    /// Spans that were lost.
    pub dropped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_written_context_is_read_back() {
        for sampled in [true, false] {
            let context = TraceContext { trace_id: 0xabc, span_id: u64::MAX, sampled };
            assert_eq!(context.to_string().len(), TEXT_LEN);
            assert_eq!(context.to_string().parse(), Ok(context));
        }
    }

    #[test]
    fn only_the_lowest_flag_means_sampled() {
        let sampled = |text: &str| text.parse::<TraceContext>().map(|context| context.sampled);
        assert_eq!(sampled(&GOOD.replace("-01", "-00")), Ok(false));
        assert_eq!(sampled(&GOOD.replace("-01", "-03")), Ok(true));
        assert_eq!(sampled(&GOOD.replace("-01", "-02")), Ok(false));
        assert_eq!(sampled(&format!("cc{}-more", &GOOD[2..])), Ok(true));
        assert_eq!(sampled(&format!("cc{}", &GOOD[2..])), Ok(true));
    }

    #[test]
    fn invalid_text_is_refused() {
        for text in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{GOOD} "),
            &format!("ff{}", &GOOD[2..]),
            &format!("cc{}.", &GOOD[2..]),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-+0f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47é6-00f067aa0ba902b7-0",
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(ParseTraceError), "{text}");
        }
        assert_eq!(TraceContext::from_stored(Some("x")), None);
        assert_eq!(TraceContext::from_stored(None), None);
    }
}
