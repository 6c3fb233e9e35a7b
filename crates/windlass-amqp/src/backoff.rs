//! How long to wait before another call to the broker, or to the store behind a bridge.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use windlass::inside::Backoff;

/// The first wait. A restarted broker needs seconds; after a closed channel a new one opens at once.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait: a consumer is back at most this late after its broker, apart from the spread.
const LONGEST: Duration = Duration::from_secs(5);
/// After a session that lasted this long, the waits start again with the first one.
pub const CALM: Duration = Duration::from_secs(30);

/// Waits from a tenth of a second to five seconds. Each has its own seed: the consumers of one process lose
/// their broker together, and must not come back at the same moment.
pub fn backoff() -> Backoff {
    Backoff::new(FIRST, LONGEST, RandomState::new().hash_one(0))
}
