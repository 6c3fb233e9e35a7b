//! Identifiers: small, sortable by time, and the same text in every interface.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Milliseconds of 2024-01-01T00:00:00Z, from which task ids count.
const ID_EPOCH_MS: i64 = 1_704_067_200_000;
/// How many low bits of an id order the tasks of one millisecond.
const ORDER_BITS: u32 = 22;
/// Crockford's base 32: no I, L, O or U, so that a person can read an id aloud without mistakes.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Letters in the text form of a task id: 13 × 5 bits hold 63.
const TEXT_LEN: usize = 13;

/// The identity of a task: 63 bits, ordered by time of enqueue, cheap in every index.
///
/// ```
/// use windlass_core::{TaskId, Timestamp};
/// let id = TaskId::first_at(Timestamp::from_ms(1_763_000_000_000));
/// assert_eq!(id.to_string().parse::<TaskId>().unwrap(), id);
/// assert_eq!(id.enqueued_at(), Timestamp::from_ms(1_763_000_000_000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(i64);

impl TaskId {
    /// The lowest id of a millisecond. A time that no id can have counts as the nearest one that an id can.
    pub fn first_at(at: Timestamp) -> Self {
        let ms = at.as_ms().saturating_sub(ID_EPOCH_MS);
        Self(ms.clamp(0, i64::MAX >> ORDER_BITS) << ORDER_BITS)
    }

    /// The id that follows this one at time `now`. It is higher than every earlier id, even if the clock went
    /// back.
    #[must_use]
    pub fn next(self, now: Timestamp) -> Self {
        Self((self.0 + 1).max(Self::first_at(now).0))
    }

    /// The id as it is stored.
    pub fn raw(self) -> i64 {
        self.0
    }

    /// An id as it was stored.
    pub fn from_raw(raw: i64) -> Self {
        Self(raw)
    }

    /// When the task was enqueued, to the millisecond.
    pub fn enqueued_at(self) -> Timestamp {
        Timestamp::from_ms((self.0 >> ORDER_BITS) + ID_EPOCH_MS)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'0'; TEXT_LEN];
        let mut rest = self.0 as u64;
        for letter in text.iter_mut().rev() {
            *letter = ALPHABET.get((rest & 31) as usize).copied().unwrap_or(b'0');
            rest >>= 5;
        }
        f.pad(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The text is not a task id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a task id: expected 13 letters and digits such as 01JD3M8K2ZQ4R")]
pub struct ParseTaskIdError(String);

impl FromStr for TaskId {
    type Err = ParseTaskIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseTaskIdError(text.chars().take(40).collect());
        if text.len() != TEXT_LEN {
            return Err(error());
        }
        let mut raw: u128 = 0;
        for letter in text.bytes() {
            let digit =
                ALPHABET.iter().position(|known| *known == letter.to_ascii_uppercase()).ok_or_else(error)?;
            raw = (raw << 5) | digit as u128;
        }
        i64::try_from(raw).map(Self).map_err(|_| error())
    }
}

impl Serialize for TaskId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The identity of one registration of a worker process. Never reused, never derived from a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub i64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

impl std::str::FromStr for WorkerId {
    type Err = crate::Error;

    /// Reads `w7`, and `7` too.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix(['w', 'W']).unwrap_or(text);
        let parsed = number.parse().ok().filter(|number| *number > 0);
        parsed
            .map(Self)
            .ok_or_else(|| crate::Error::invalid(format!("{text:?} is not the id of a worker such as w7")))
    }
}

/// The interned pair (queue, kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneId(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_sorts_like_the_number_and_survives_lower_case() {
        let a = TaskId::first_at(Timestamp::from_ms(1_763_000_000_000));
        let b = a.next(Timestamp::from_ms(1_763_000_000_001));
        assert!(a < b && a.to_string() < b.to_string());
        assert_eq!(b.to_string().to_lowercase().parse::<TaskId>().unwrap(), b);
    }

    #[test]
    fn ids_rise_when_the_clock_goes_back() {
        let a = TaskId::first_at(Timestamp::from_ms(1_763_000_000_000));
        assert!(a.next(Timestamp::from_ms(1_700_000_000_000)) > a);
    }

    #[test]
    fn a_worker_is_named_with_or_without_its_letter() {
        assert_eq!((Ok(WorkerId(7)), Ok(WorkerId(7))), ("w7".parse(), "7".parse()));
        for text in ["", "w", "x7", "w-1", "w0", "7w", "w99999999999999999999"] {
            assert!(text.parse::<WorkerId>().unwrap_err().to_string().contains("w7"), "{text}");
        }
    }

    #[test]
    fn invalid_text_is_refused() {
        for text in ["", "1", "ZZZZZZZZZZZZZ", "0000000000000000", "00000000000U0", "01JD3M8K2ZQ4é"] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }
}
