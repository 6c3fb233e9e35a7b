//! Values as parameters hold them.

use std::time::Duration;

/// A duration in milliseconds. The longest can still be added to a time.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// A time limit in milliseconds, rounded up so that a short one does not vanish.
pub(crate) fn ms_up(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A limit as an `integer`.
pub(crate) fn narrow(limit: u32) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}

/// One value of each row, as an array.
pub(crate) fn column<'a, T, V>(rows: &'a [T], value: impl FnMut(&'a T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
