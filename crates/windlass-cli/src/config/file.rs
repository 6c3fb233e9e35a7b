//! windlass.toml: which file is read, and its keys with their line numbers.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::{amqp, nearest::nearest, setting::Raw, table};
use crate::failure::{Exit, Failure};

/// Where to look for a file if none is named.
const PLACES: [&str; 2] = ["windlass.toml", "/etc/windlass/windlass.toml"];

/// One key of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its full name; a dot separates the table from the key.
    pub key: String,
    /// Its value, not yet parsed.
    pub raw: Raw,
    /// Its line, counted from 1.
    pub line: usize,
}

/// A file that was read.
#[derive(Debug, Default)]
pub struct File {
    /// Which one, if any.
    pub path: Option<PathBuf>,
    /// Its keys.
    pub entries: Vec<Entry>,
}

/// Reads the named file, or the first that exists in the usual places below `folder`.
pub fn find_and_read(named: Option<&Path>, folder: &Path) -> Result<File, Failure> {
    let path = match named {
        Some(path) => Some(path.to_owned()),
        None => PLACES.iter().map(|place| folder.join(place)).find(|path| path.is_file()),
    };
    let Some(path) = path else {
        return Ok(File::default());
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let entries = parse(&text).map_err(|problem| Failure {
        message: format!("{}, {}", path.display(), problem.message),
        ..problem
    })?;
    Ok(File { path: Some(path), entries })
}

/// The keys of a file's text. Unknown ones are refused with the nearest known one.
pub fn parse(text: &str) -> Result<Vec<Entry>, Failure> {
    let line_of = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        Failure::usage(format!("line {line}: {}", error.message().lines().next().unwrap_or("not TOML")))
    })?;
    let mut entries = Vec::new();
    flatten("", document.get_ref(), &line_of, &mut entries)?;
    Ok(entries)
}

fn flatten(
    prefix: &str,
    table: &DeTable<'_>,
    line_of: &impl Fn(usize) -> usize,
    entries: &mut Vec<Entry>,
) -> Result<(), Failure> {
    // In the order of the file, so that the first mistake is reported first.
    let mut keys: Vec<_> = table.iter().collect();
    keys.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in keys {
        let key = format!("{prefix}{}", name.get_ref());
        let line = line_of(name.span().start);
        if let DeValue::Table(inner) = value.get_ref() {
            if !table::ALL.iter().any(|setting| setting.key.starts_with(&format!("{key}."))) {
                return Err(unknown(&key, line));
            }
            flatten(&format!("{key}."), inner, line_of, entries)?;
            continue;
        }
        if amqp::LISTS.contains(&key.as_str()) {
            // `amqp::read` reads and checks these lists.
            continue;
        }
        if !table::ALL.iter().any(|setting| setting.key == key) {
            return Err(unknown(&key, line));
        }
        let raw = raw(value.get_ref()).ok_or_else(|| {
            Failure::usage(format!("line {line}: {key} must be text, a number or a list of texts"))
        })?;
        entries.push(Entry { key, raw, line });
    }
    Ok(())
}

fn unknown(key: &str, line: usize) -> Failure {
    let known = table::ALL.iter().map(|setting| setting.key);
    let failure = Failure::new(Exit::Usage, format!("line {line}: unknown setting {key:?}"));
    match nearest(key, known) {
        Some(near) => failure.hint(format!("did you mean {near:?}?")),
        None => failure.hint("`windlass config init` writes a file with every setting"),
    }
}

fn raw(value: &DeValue<'_>) -> Option<Raw> {
    match value {
        DeValue::Array(items) => items
            .iter()
            .map(|item| match raw(item.get_ref()) {
                Some(Raw::Text(text)) => Some(text),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map(Raw::List),
        DeValue::String(text) => Some(Raw::Text(text.to_string())),
        DeValue::Integer(number) => Some(Raw::Text(number.to_string())),
        DeValue::Float(number) => Some(Raw::Text(number.to_string())),
        DeValue::Boolean(truth) => Some(Raw::Text(truth.to_string())),
        DeValue::Table(_) | DeValue::Datetime(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_line_and_dots_for_tables() {
        let entries = parse("slots = 5\n\n[pool]\nsize = 8\n").unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].key.as_str(), entries[0].line), ("slots", 1));
        assert_eq!((entries[1].key.as_str(), entries[1].line), ("pool.size", 4));
        assert_eq!(entries[1].raw, Raw::Text("8".to_owned()));
    }

    #[test]
    fn an_unknown_key_is_refused_with_line_and_suggestion() {
        let failure = parse("listen = \"127.0.0.1:1\"\nslot = 5\n").unwrap_err();
        assert_eq!(failure.message, "line 2: unknown setting \"slot\"");
        assert_eq!(failure.hint.as_deref(), Some("did you mean \"slots\"?"));
        let failure = parse("[pol]\nsize = 1\n").unwrap_err();
        assert!(failure.message.contains("\"pol\""), "{}", failure.message);
    }

    #[test]
    fn broken_toml_names_the_line() {
        let failure = parse("slots = 5\nlisten = \n").unwrap_err();
        assert!(failure.message.starts_with("line 2: "), "{}", failure.message);
    }
}
