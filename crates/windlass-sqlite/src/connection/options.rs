//! How a store is opened: where it is, and with which settings.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use windlass_core::{Clock, Rules, Timestamp};

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a file, with its log and its lock beside it.
    File(PathBuf),
    /// In memory: gone with the process.
    Memory,
}

impl Location {
    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Memory => None,
        }
    }

    /// The same place as an absolute path, valid from every folder of this machine. Links are not resolved.
    #[must_use]
    pub fn absolute(self) -> Self {
        match self {
            // This fails only if the working folder is gone; then the path stays as written.
            Self::File(path) => Self::File(std::path::absolute(&path).unwrap_or(path)),
            Self::Memory => Self::Memory,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("sqlite::memory:"),
        }
    }
}

/// The text is not the address of an embedded store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an embedded store: expected sqlite:PATH, sqlite:///ABSOLUTE/PATH or sqlite::memory:")]
pub struct ParseLocationError(String);

impl FromStr for Location {
    type Err = ParseLocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseLocationError(text.chars().take(200).collect());
        let rest = text.strip_prefix("sqlite:").ok_or_else(error)?;
        if rest == ":memory:" {
            return Ok(Self::Memory);
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path.is_empty() || path.ends_with('/') || path.contains('\0') {
            return Err(error());
        }
        Ok(Self::File(PathBuf::from(path)))
    }
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power cut: every acknowledged write is synced to the disk.
    #[default]
    Full,
    /// The death of the process, not a power cut.
    Normal,
}

/// Whether done and cancelled tasks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// Until retention removes them.
    #[default]
    Kept,
    /// No, except those that a caller awaits or that left an output: they stay for ten minutes.
    Off,
}

/// Free bytes of the disk below which enqueue is refused.
pub const MIN_FREE_BYTES: u64 = 1 << 30;
/// Free share of the disk, in per cent, below which enqueue is refused.
pub const MIN_FREE_PERCENT: u8 = 5;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Limits and budgets.
    pub rules: Rules,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Whether a claim is synced to the disk before its tasks start, as other writes are. Without it a power
    /// cut can undo a claim of a remote worker. That worker goes on with the task until its next renewal
    /// tells it.
    pub durable_claims: bool,
    /// Whether ended tasks are kept.
    pub history: History,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Enqueue is refused with less free disk than this; 0 turns the check off.
    pub min_free_bytes: u64,
    /// Enqueue is refused with a smaller free share of the disk, in per cent; 0 turns the check off.
    pub min_free_percent: u8,
    /// Where the process that opens the store can be reached; the error of a second opener names it.
    pub address: Option<String>,
    /// Whether a missing store is created.
    pub create: bool,
    /// Whether every worker counts as dead when the store is opened, also a remote one: no task runs
    /// afterwards.
    #[doc(hidden)]
    pub nobody_lives: bool,
    /// Replacements of statements in `sql/`: tests show that the suite notices a broken statement.
    #[doc(hidden)]
    pub replaced: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            durability: Durability::Full,
            durable_claims: false,
            history: History::Kept,
            clock: Arc::new(SystemClock::new()),
            min_free_bytes: MIN_FREE_BYTES,
            min_free_percent: MIN_FREE_PERCENT,
            address: None,
            create: true,
            nobody_lives: false,
            replaced: Vec::new(),
        }
    }
}

impl Options {
    /// The defaults; change fields with the methods below or directly.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits and budgets.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets what an acknowledged write survives.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether a claim is synced to the disk before its tasks start.
    #[must_use]
    pub fn durable_claims(mut self, durable: bool) -> Self {
        self.durable_claims = durable;
        self
    }

    /// Sets whether ended tasks are kept.
    #[must_use]
    pub fn history(mut self, history: History) -> Self {
        self.history = history;
        self
    }

    /// Sets the clocks.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets how much free disk enqueue needs.
    #[must_use]
    pub fn min_free(mut self, bytes: u64, percent: u8) -> Self {
        self.min_free_bytes = bytes;
        self.min_free_percent = percent;
        self
    }

    /// Sets where this process can be reached.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Refuses a missing store instead of creating it.
    #[must_use]
    pub fn existing_only(mut self) -> Self {
        self.create = false;
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("rules", &self.rules)
            .field("durability", &self.durability)
            .field("history", &self.history)
            .field("min_free_bytes", &self.min_free_bytes)
            .field("min_free_percent", &self.min_free_percent)
            .field("address", &self.address)
            .field("create", &self.create)
            .finish_non_exhaustive()
    }
}

/// The clocks of this machine.
#[derive(Debug, Clone)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Clocks whose monotonic time starts now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_file_or_memory() {
        for (text, location) in [
            ("sqlite:windlass.db", Location::File("windlass.db".into())),
            ("sqlite:/var/lib/w.db", Location::File("/var/lib/w.db".into())),
            ("sqlite:///var/lib/w.db", Location::File("/var/lib/w.db".into())),
            ("sqlite::memory:", Location::Memory),
        ] {
            assert_eq!(text.parse::<Location>().unwrap(), location);
            assert_eq!(location.to_string().parse::<Location>().unwrap(), location);
        }
        for text in ["", "sqlite:", "sqlite://", "sqlite:dir/", "postgres://x", "windlass.db"] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }
}
