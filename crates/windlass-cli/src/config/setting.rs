//! One setting: its names, its type, its bounds, and how its text becomes a value.

use std::{net::SocketAddr, time::Duration};

use windlass_core::Name;
use windlass_server::public_url::PublicUrl;

use crate::duration;

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// Its name in windlass.toml; a dot is a table.
    pub key: &'static str,
    /// Its type and bounds.
    pub kind: Kind,
    /// Its default as a user would write it; empty means none.
    pub default: &'static str,
    /// What it does, in one or two sentences.
    pub doc: &'static str,
    /// Its flag, if it has one.
    pub flag: Option<&'static str>,
    /// The name of its variable in the source documents, if they name one.
    pub document: Option<&'static str>,
}

impl Setting {
    /// A setting without a flag.
    pub const fn new(key: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { key, kind, default, doc, flag: None, document: None }
    }

    /// The same with a flag.
    #[must_use]
    pub const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    /// The same with the variable of the source documents.
    #[must_use]
    pub const fn document(mut self, variable: &'static str) -> Self {
        self.document = Some(variable);
        self
    }

    /// Its variable in the environment.
    pub fn variable(&self) -> String {
        format!("WINDLASS_{}", self.key.to_uppercase().replace('.', "_"))
    }

    /// Its default as a value.
    pub fn default_value(&self) -> Value {
        match self.default {
            "" => Value::None,
            text => self.read(&Raw::Text(text.to_owned())).map_or(Value::None, |read| read.value),
        }
    }

    /// Parses a value as the user wrote it.
    ///
    /// # Errors
    /// One line that starts with the setting's name.
    pub fn read(&self, raw: &Raw) -> Result<Read, String> {
        self.kind.read(raw).map_err(|problem| format!("{} {problem}", self.key))
    }

    /// Parses the value of the setting's flag. The unit of a time is part of the key's name but not of
    /// the flag's name, so a bare number after a flag is refused: `--drain-timeout 30` has no unit.
    ///
    /// # Errors
    /// One line that starts with the setting's name.
    pub fn read_flag(&self, raw: &Raw) -> Result<Read, String> {
        if let (Kind::Millis { .. } | Kind::Days, Raw::Text(text)) = (self.kind, raw) {
            timed(text.trim()).map_err(|problem| format!("{} {problem}", self.key))?;
        }
        self.read(raw)
    }
}

/// A value as the user wrote it, not yet parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raw {
    /// One word or number.
    Text(String),
    /// Several.
    List(Vec<String>),
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Not set, and no default.
    None,
    /// Text.
    Text(String),
    /// A number.
    Number(u64),
    /// A span of time.
    Duration(Duration),
    /// Several texts.
    List(Vec<String>),
}

/// A parsed value, and the change that was made to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// The value in force.
    pub value: Value,
    /// "5 is below the least allowed, 10; 10 is used", if the value was moved into its bounds.
    pub clamped: Option<String>,
}

/// Type and bounds of a setting. Zero is refused where the least value is one. Any other number outside
/// the bounds is moved to the nearest bound with a warning.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text.
    Text,
    /// An address with a port.
    Address,
    /// An address of a web server.
    Url,
    /// A number.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Bytes, as a number or like `64KiB`.
    Bytes {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Milliseconds as a number, or a duration like `30s`.
    Millis {
        /// The least, in milliseconds.
        min: u64,
        /// The most, in milliseconds.
        max: u64,
    },
    /// Days as a number, or a duration like `12h`.
    Days,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Names of queues.
    Names,
    /// Networks such as 10.0.0.0/8.
    Networks,
    /// Names of hosts.
    Hosts,
    /// Names of environment variables.
    Variables,
    /// A share such as 0.8 or 80%; the value is in thousandths.
    Share {
        /// The least, in thousandths.
        min: u64,
        /// The most, in thousandths.
        max: u64,
    },
    /// Kinds with a time each, such as `http=5s`.
    Thresholds,
}

/// Most days that anything is kept: ten years.
const DAYS_MAX: u64 = 3_660;

impl Kind {
    fn read(self, raw: &Raw) -> Result<Read, String> {
        let list = |check: fn(&str) -> Result<(), String>| {
            let items = items(raw);
            items.iter().try_for_each(|item| check(item))?;
            Ok(Read { value: Value::List(items), clamped: None })
        };
        match self {
            Self::Names => return list(|name| Name::new("queue", name).map(drop).map_err(|e| e.to_string())),
            Self::Networks => return list(check_network),
            Self::Hosts => return list(check_host),
            Self::Variables => return list(check_variable),
            Self::Thresholds => return list(|item| kind_time(item).map(drop)),
            _ => {}
        }
        let Raw::Text(text) = raw else {
            return Err("takes one value, not a list".to_owned());
        };
        let text = text.trim();
        let plain = |value| Ok(Read { value, clamped: None });
        match self {
            Self::Text if text.is_empty() => Err("must not be empty".to_owned()),
            Self::Text => plain(Value::Text(text.to_owned())),
            Self::Address => plain(Value::Text(address(text)?.to_string())),
            Self::Url => text.parse::<PublicUrl>().map(|_| plain(Value::Text(text.to_owned())))?,
            Self::Count { min, max } => Ok(bounded(number(text)?, min, max, |n| n.to_string())?.number()),
            Self::Bytes { min, max } => Ok(bounded(bytes(text)?, min, max, |n| n.to_string())?.number()),
            Self::Millis { min, max } => {
                let ms = span(text, 1)?;
                Ok(bounded(ms, min, max, |ms| format!("{ms} ms"))?.duration())
            }
            Self::Days => {
                let ms = span(text, 86_400_000)?;
                Ok(bounded(ms, 0, DAYS_MAX * 86_400_000, |ms| format!("{} days", ms / 86_400_000))?
                    .duration())
            }
            Self::Choice(words) if words.contains(&text) => plain(Value::Text(text.to_owned())),
            // A file may say it in TOML's own words.
            Self::Choice(["on", "off"]) if matches!(text, "true" | "false") => {
                let word = if text == "true" { "on" } else { "off" };
                plain(Value::Text(word.to_owned()))
            }
            Self::Choice(words) => Err(format!("must be one of {}, not {text:?}", words.join(", "))),
            Self::Share { min, max } => {
                Ok(bounded(share(text)?, min, max, |n| (n as f64 / 1e3).to_string())?.number())
            }
            Self::Names | Self::Networks | Self::Hosts | Self::Variables | Self::Thresholds => {
                plain(Value::None)
            }
        }
    }

    /// The bounds as text; empty if there are none.
    pub fn bounds(self) -> String {
        match self {
            Self::Text => String::new(),
            Self::Address => "address:port".to_owned(),
            Self::Url => "URL".to_owned(),
            Self::Count { min, max: u64::MAX } => format!("≥ {min}"),
            Self::Count { min, max } => format!("{min}–{max}"),
            Self::Bytes { min, max: u64::MAX } => format!("≥ {min} bytes"),
            Self::Bytes { min, max } => format!("{min}–{max} bytes"),
            Self::Millis { min, max } => format!("{min}–{max} ms"),
            Self::Days => format!("0–{DAYS_MAX} days"),
            Self::Choice(words) => words.join(", "),
            Self::Names => "queue names".to_owned(),
            Self::Networks => "networks (CIDR)".to_owned(),
            Self::Hosts => "host names".to_owned(),
            Self::Variables => "names of variables".to_owned(),
            Self::Share { min, max } => format!("{}–{}", min as f64 / 1e3, max as f64 / 1e3),
            Self::Thresholds => "kind=time".to_owned(),
        }
    }
}

/// A number and its bounds, before it becomes a value.
struct Bounded {
    number: u64,
    clamped: Option<String>,
}

impl Bounded {
    fn number(self) -> Read {
        Read { value: Value::Number(self.number), clamped: self.clamped }
    }

    fn duration(self) -> Read {
        Read { value: Value::Duration(Duration::from_millis(self.number)), clamped: self.clamped }
    }
}

fn bounded(number: u64, min: u64, max: u64, show: fn(u64) -> String) -> Result<Bounded, String> {
    if number == 0 && min > 0 {
        return Err(format!("must be at least {}, not 0", show(min)));
    }
    let inside = number.clamp(min, max);
    let clamped = (inside != number).then(|| {
        let side = if number < min { "below the least" } else { "above the most" };
        format!("{} is {side} allowed; {} is used", show(number), show(inside))
    });
    Ok(Bounded { number: inside, clamped })
}

fn number(text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| format!("must be a whole number, not {text:?}"))
}

/// Parses a number of units (each `unit_ms` long) or a duration with its own unit; the result is in
/// milliseconds.
fn span(text: &str, unit_ms: u64) -> Result<u64, String> {
    if let Ok(number) = text.replace('_', "").parse::<u64>() {
        return Ok(number.saturating_mul(unit_ms));
    }
    timed(text)
}

/// Parses a duration with its unit; the result is in milliseconds.
fn timed(text: &str) -> Result<u64, String> {
    let duration = duration::parse(text).map_err(|problem| format!("is wrong: {problem}"))?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Parses a share into thousandths.
fn share(text: &str) -> Result<u64, String> {
    let wrong = || format!("must be a share such as 0.8 or 80%, not {text:?}");
    let (number, unit) = text.strip_suffix('%').map_or((text, 1e3), |percent| (percent, 10.0));
    let parsed: f64 = number.trim().parse().map_err(|_| wrong())?;
    if parsed.is_finite() && parsed >= 0.0 { Ok((parsed * unit).round() as u64) } else { Err(wrong()) }
}

/// Parses a kind and its time with a unit, such as `http=5s`.
pub fn kind_time(text: &str) -> Result<(Name, Duration), String> {
    let wrong = || format!("has {text:?}, which is not a kind with a time such as http=5s");
    let (kind, time) = text.split_once('=').ok_or_else(wrong)?;
    let kind = Name::new("kind", kind.trim()).map_err(|error| error.to_string())?;
    let ms = timed(time.trim()).map_err(|problem| format!("has {text:?}, which {problem}"))?;
    if ms == 0 { Err(wrong()) } else { Ok((kind, Duration::from_millis(ms))) }
}

fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("must be a number of bytes such as 65536 or 64KiB, not {text:?}");
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    for (unit, shift) in units {
        if let Some(amount) = text.strip_suffix(unit) {
            let amount: u64 = amount.trim().parse().map_err(|_| wrong())?;
            return amount.checked_mul(1 << shift).ok_or_else(wrong);
        }
    }
    text.replace('_', "").parse().map_err(|_| wrong())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.replacen("localhost:", "127.0.0.1:", 1);
    numeric
        .parse()
        .map_err(|_| format!("must be an address with a port such as 127.0.0.1:7878, not {text:?}"))
}

fn items(raw: &Raw) -> Vec<String> {
    let split = |text: &String| {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    match raw {
        Raw::Text(text) => split(text),
        Raw::List(texts) => texts.iter().flat_map(split).collect(),
    }
}

fn check_network(text: &str) -> Result<(), String> {
    let network = text.parse::<windlass_kinds::Cidr>();
    network.map(drop).map_err(|_| format!("has {text:?}, which is not a network such as 10.0.0.0/8"))
}

fn check_host(text: &str) -> Result<(), String> {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        Ok(())
    } else {
        Err(format!("has {text:?}, which is not the name of a host without a port"))
    }
}

fn check_variable(text: &str) -> Result<(), String> {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok(())
    } else {
        Err(format!("has {text:?}, which is not the name of a variable"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Result<Read, String> {
        Setting::new("slots", kind, "", "").read(&Raw::Text(text.to_owned()))
    }

    #[test]
    fn a_number_out_of_bounds_is_moved_and_both_are_shown() {
        let kind = Kind::Count { min: 10, max: 100 };
        let high = read(kind, "200").unwrap();
        assert_eq!(high.value, Value::Number(100));
        let text = high.clamped.unwrap();
        assert!(text.contains("200") && text.contains("100"), "{text}");
        let low = read(kind, "3").unwrap();
        assert_eq!(low.value, Value::Number(10));
        assert!(low.clamped.unwrap().contains("below the least"));
        assert_eq!(read(kind, "50").unwrap().clamped, None);
    }

    #[test]
    fn an_invalid_value_is_refused_with_the_setting_name() {
        for text in ["0", "-1", "many", "1.5", ""] {
            let problem = read(Kind::Count { min: 1, max: 10 }, text).unwrap_err();
            assert!(problem.starts_with("slots "), "{problem}");
        }
        for text in ["7878", "localhost", "300.1.1.1:1"] {
            assert!(read(Kind::Address, text).is_err(), "{text}");
        }
        for text in ["10.0.0.0/33", "example.com", "10.0.0.0/", "::/129"] {
            assert!(read(Kind::Networks, text).is_err(), "{text}");
        }
        assert!(read(Kind::Choice(&["full", "normal"]), "Full").unwrap_err().contains("full, normal"));
    }

    #[test]
    fn a_bare_number_has_the_unit_of_the_key() {
        let hour = Value::Duration(Duration::from_hours(1));
        let kind = Kind::Millis { min: 1, max: 10_000_000 };
        assert_eq!(read(kind, "1h").unwrap().value, hour);
        assert_eq!(read(kind, "3600000").unwrap().value, hour);
        assert_eq!(read(Kind::Days, "7").unwrap().value, Value::Duration(Duration::from_hours(168)));
        assert_eq!(read(Kind::Days, "1m").unwrap().value, Value::Duration(Duration::from_mins(1)));
        let bytes = Kind::Bytes { min: 0, max: u64::MAX };
        assert_eq!(read(bytes, "64KiB").unwrap().value, Value::Number(65_536));
        assert_eq!(read(bytes, "1GiB").unwrap().value, Value::Number(1 << 30));
    }

    #[test]
    fn a_time_after_a_flag_needs_its_unit() {
        let millis = Setting::new("drain_timeout_ms", Kind::Millis { min: 0, max: 10_000_000 }, "", "");
        let days = Setting::new("history_days", Kind::Days, "", "");
        let text = |text: &str| Raw::Text(text.to_owned());
        for setting in [&millis, &days] {
            for wrong in ["30", "0", "30_000"] {
                assert!(setting.read(&text(wrong)).is_ok(), "the key has the unit in its name");
                assert!(setting.read_flag(&text(wrong)).is_err(), "{wrong}");
            }
            assert_eq!(setting.read_flag(&text("30s")), setting.read(&text("30s")));
        }
        assert!(millis.read_flag(&text("30")).unwrap_err().contains("30s or 30ms"));
        let count = Setting::new("slots", Kind::Count { min: 1, max: 100 }, "", "");
        assert_eq!(count.read_flag(&text("30")).unwrap().value, Value::Number(30));
    }

    #[test]
    fn shares_and_kind_times_are_parsed() {
        let kind = Kind::Share { min: 100, max: 950 };
        for (text, value) in [("0.8", 800), ("80%", 800), ("0.95", 950), ("12.5%", 125)] {
            assert_eq!(read(kind, text).unwrap().value, Value::Number(value), "{text}");
        }
        assert!(read(kind, "2").unwrap().clamped.unwrap().contains("0.95"));
        for text in ["0", "-1", "most", "NaN", "inf", ""] {
            assert!(read(kind, text).is_err(), "{text}");
        }
        assert_eq!(
            kind_time("http=5s").unwrap(),
            (Name::new("kind", "http").unwrap(), Duration::from_secs(5))
        );
        assert_eq!(kind_time(" mail = 250ms ").unwrap().1, Duration::from_millis(250));
        for text in ["http", "=5s", "http=", "http=0s", "http=250", "http=soon"] {
            assert!(read(Kind::Thresholds, text).is_err(), "{text}");
        }
    }

    #[test]
    fn lists_come_from_commas_or_from_several_flags() {
        let setting = Setting::new("queues", Kind::Names, "", "");
        let several = Raw::List(vec!["a,b".to_owned(), "c".to_owned()]);
        let value = setting.read(&several).unwrap().value;
        assert_eq!(value, Value::List(vec!["a".into(), "b".into(), "c".into()]));
    }
}
