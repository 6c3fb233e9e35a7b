//! The limits and defaults that the stores and workers of one installation share.

use std::time::Duration;

use crate::retry::RetryPolicy;

/// Limits and budgets with their defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Attempts that a task gets unless it sets its own number.
    pub max_attempts: u32,
    /// A task is dead after this many crashes, if it was alone in its process at the last one.
    pub max_crashes: u32,
    /// Largest payload.
    pub payload_max_bytes: usize,
    /// Largest output that is kept.
    pub output_max_bytes: usize,
    /// Longest error text that is kept; a longer one is cut and marked.
    pub error_max_bytes: usize,
    /// Most tasks in one enqueue call.
    pub batch_max: usize,
    /// How long an idempotency key is remembered after its task ended.
    pub idempotency_ttl: Duration,
    /// Retry delays for tasks that set none.
    pub retry: RetryPolicy,
    /// The limit that a job gets when it is first used; `None` for no limit.
    pub job_default_concurrency: Option<u32>,
    /// Most lanes in use: pairs of queue and kind. Each takes memory in every process, and time in every
    /// claim.
    pub lanes_max: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_attempts: 10,
            max_crashes: 3,
            payload_max_bytes: 1 << 20,
            output_max_bytes: 64 << 10,
            error_max_bytes: 4 << 10,
            batch_max: 10_000,
            idempotency_ttl: Duration::from_hours(168),
            retry: RetryPolicy::default(),
            job_default_concurrency: None,
            lanes_max: 10_000,
        }
    }
}

impl Rules {
    /// Makes error text safe to keep: replaces NUL, and cuts and marks text longer than `error_max_bytes`.
    pub fn clip_error(&self, text: &str) -> String {
        const MARK: &str = "… (cut)";
        let mut text = text.replace('\0', "\u{fffd}");
        if text.len() > self.error_max_bytes {
            let mut end = self.error_max_bytes.saturating_sub(MARK.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str(MARK);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_has_no_nul_and_is_cut_at_a_character() {
        let rules = Rules { error_max_bytes: 20, ..Rules::default() };
        assert_eq!(rules.clip_error("a\0b"), "a\u{fffd}b");
        let cut = rules.clip_error(&"é".repeat(100));
        assert!(cut.len() <= 20 && cut.ends_with("(cut)"), "{cut}");
    }
}
