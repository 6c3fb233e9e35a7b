//! The settings in force, each with its origin.

use std::{fmt, path::PathBuf, time::Duration};

use windlass::admission::AdmissionConfig;
use windlass_core::{RetryPolicy, Rules, store::Retention};

use super::{
    setting::{Setting, Value, kind_time},
    slots::Slots,
    table,
};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// The environment, by this variable.
    Variable(String),
    /// The environment, by a variable name of the source documents.
    Document(&'static str),
    /// A file, at this line.
    File(PathBuf, usize),
    /// The preset that `env` names.
    Preset(&'static str),
    /// The built-in default.
    Default,
}

impl Origin {
    /// How far the origin is from the typed command. A nearer origin wins over a farther one.
    pub fn distance(&self) -> u8 {
        match self {
            Self::Flag(_) => 0,
            Self::Variable(_) | Self::Document(_) => 1,
            Self::File(..) => 2,
            Self::Preset(_) | Self::Default => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => f.write_str(name),
            Self::Document(name) => f.write_str(name),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Preset(env) => write!(f, "env {env}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One setting in force.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// Which.
    pub setting: &'static Setting,
    /// Its value.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// A secret: no log line and no output shows it.
#[derive(Clone)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// All settings in force.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// One for each row of the table.
    pub resolved: Vec<Resolved>,
    /// How many tasks run at once, and which rule gave that number.
    pub slots: Slots,
    /// Values that were moved into their bounds, and other warnings for the user.
    pub warnings: Vec<String>,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// The token of WINDLASS_TOKEN, if it is set.
    pub token: Option<Secret>,
}

impl Settings {
    fn find(&self, setting: &Setting) -> Option<&Resolved> {
        self.resolved.iter().find(|resolved| resolved.setting.key == setting.key)
    }

    /// The value in force.
    pub fn value(&self, setting: &'static Setting) -> Value {
        self.find(setting).map_or_else(|| setting.default_value(), |resolved| resolved.value.clone())
    }

    /// Where the value came from.
    pub fn origin(&self, setting: &Setting) -> Origin {
        self.find(setting).map_or(Origin::Default, |resolved| resolved.origin.clone())
    }

    /// Whether the user gave the value, so that it is not a default.
    pub fn is_given(&self, setting: &Setting) -> bool {
        self.origin(setting) != Origin::Default
    }

    /// A text; empty if there is none.
    pub fn text(&self, setting: &'static Setting) -> String {
        match self.value(setting) {
            Value::Text(text) => text,
            _ => String::new(),
        }
    }

    /// A number; zero if there is none.
    pub fn number(&self, setting: &'static Setting) -> u64 {
        match self.value(setting) {
            Value::Number(number) => number,
            _ => 0,
        }
    }

    /// A number, if there is one.
    pub fn given_number(&self, setting: &'static Setting) -> Option<u32> {
        match self.value(setting) {
            Value::Number(number) => Some(number as u32),
            _ => None,
        }
    }

    /// When fewer tasks may run than there are slots.
    pub fn admission(&self) -> AdmissionConfig {
        let memory_limit = match self.value(&table::MEMORY_LIMIT) {
            Value::Number(bytes) => Some(bytes),
            _ => None,
        };
        let threshold = self.duration(&table::LATENCY_THRESHOLD_MS);
        let kinds = self.list(&table::KIND_LATENCY_THRESHOLDS);
        AdmissionConfig {
            is_on: self.text(&table::ADMISSION) == "on",
            memory_high: self.number(&table::MEMORY_HIGH) as f64 / 1e3,
            memory_limit,
            latency_threshold: (!threshold.is_zero()).then_some(threshold),
            kind_latency_thresholds: kinds.iter().filter_map(|item| kind_time(item).ok()).collect(),
        }
    }

    /// A span of time; zero if there is none.
    pub fn duration(&self, setting: &'static Setting) -> Duration {
        match self.value(setting) {
            Value::Duration(duration) => duration,
            _ => Duration::ZERO,
        }
    }

    /// Several texts.
    pub fn list(&self, setting: &'static Setting) -> Vec<String> {
        match self.value(setting) {
            Value::List(items) => items,
            _ => Vec::new(),
        }
    }

    /// Limits and budgets for the store.
    pub fn rules(&self) -> Rules {
        let count = |setting| self.number(setting);
        Rules {
            max_attempts: count(&table::MAX_ATTEMPTS) as u32,
            max_crashes: count(&table::MAX_CRASHES) as u32,
            payload_max_bytes: count(&table::PAYLOAD_MAX_BYTES) as usize,
            output_max_bytes: count(&table::OUTPUT_MAX_BYTES) as usize,
            error_max_bytes: count(&table::ERROR_MAX_BYTES) as usize,
            idempotency_ttl: self.duration(&table::IDEMPOTENCY_TTL_DAYS),
            retry: RetryPolicy {
                base: self.duration(&table::RETRY_BASE_MS),
                max: self.duration(&table::RETRY_MAX_MS),
                ..RetryPolicy::default()
            },
            job_default_concurrency: self.given_number(&table::JOB_DEFAULT_CONCURRENCY),
            ..Rules::default()
        }
    }

    /// How long ended tasks are kept.
    pub fn retention(&self) -> Retention {
        Retention {
            history_age: self.duration(&table::HISTORY_DAYS),
            history_max_bytes: self.number(&table::HISTORY_MAX_BYTES),
            dead_age: self.duration(&table::DEAD_DAYS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_any_setting_the_rules_are_those_of_the_core() {
        let settings = Settings::default();
        assert_eq!(settings.rules(), Rules::default());
        assert_eq!(settings.retention(), Retention::default());
        assert_eq!(settings.admission(), AdmissionConfig::default());
    }
}
