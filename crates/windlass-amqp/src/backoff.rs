//! How long to wait before the broker, or the store behind a bridge, is asked again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use windlass::backoff::Backoff;

/// The first wait. A restarted broker needs seconds; a closed channel is open again at once.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait: how late a consumer may be back after its broker, besides the spread.
const LONGEST: Duration = Duration::from_secs(5);
/// A session that lasted this long starts the count anew.
pub const CALM: Duration = Duration::from_secs(30);

/// Waits from a tenth of a second to five seconds. Each has a seed of its own, so that consumers of one process, which lose their
/// broker together, do not come back in step.
pub fn backoff() -> Backoff {
    Backoff::new(FIRST, LONGEST, RandomState::new().hash_one(0))
}
