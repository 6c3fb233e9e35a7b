//! `windlass config init|check`.

use std::{fs::OpenOptions, io::Write as _, path::PathBuf};

use clap::Subcommand;
use serde_json::json;

use crate::{
    config::{Resolved, Value, amqp, docs, setting::Kind, table},
    duration,
    failure::{Exit, Failure},
    output::{Form, Output, table::Table, text},
    session::Session,
    store,
};

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a commented file with every setting
    Init {
        /// Where to
        #[arg(default_value = "windlass.toml")]
        file: PathBuf,
    },
    /// Check all settings, and show each value in force and where it came from
    Check,
    /// Print docs/configuration.md
    #[command(hide = true)]
    Docs,
}

/// Writes the commented file. It reads no settings, so it also works while the existing file is broken.
pub fn init(file: &PathBuf, quiet: bool) -> anyhow::Result<Exit> {
    let mut open = OpenOptions::new();
    let target = open.write(true).create_new(true).open(file);
    let mut target = target.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Refused, format!("{} exists", file.display())).hint("name another file")
        }
        _ => Failure::new(Exit::Failed, format!("cannot write {}: {error}", file.display())),
    })?;
    target.write_all(docs::example_file().as_bytes())?;
    Output::new(Form::Text, quiet)
        .note(format!("{} written; `windlass config check` shows what is in force", file.display()));
    Ok(Exit::Done)
}

/// Prints the page of the documentation.
pub fn docs() -> anyhow::Result<Exit> {
    Output::new(Form::Text, false).page(&docs::page())?;
    Ok(Exit::Done)
}

/// Shows the values in force. When this runs, each value has already been checked on its own.
pub fn check(session: &Session) -> anyhow::Result<Exit> {
    store::place(&session.settings)?;
    amqp::read(session.settings.file.as_deref())?;
    let out = session.out;
    if out.is_json() {
        let settings: Vec<_> = session
            .settings
            .resolved
            .iter()
            .map(|one| json!({"key": one.setting.key, "value": shown(one), "origin": one.origin.to_string()}))
            .collect();
        let file = session.settings.file.as_ref().map(|file| file.display().to_string());
        out.json(&json!({"file": file, "warnings": session.settings.warnings, "settings": settings}))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for one in &session.settings.resolved {
        let value = text::clean(&shown(one));
        table.row(vec![one.setting.key.to_owned(), value, text::clean(&one.origin.to_string())]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    match &session.settings.file {
        Some(file) => out.note(format!("ok: {} read", file.display())),
        None => out.note("ok: no file read; `windlass config init` writes one"),
    }
    Ok(Exit::Done)
}

/// A value as a user would write it.
fn shown(one: &Resolved) -> String {
    match &one.value {
        Value::Number(number) => match one.setting.kind {
            Kind::Share { .. } => (*number as f64 / 1e3).to_string(),
            Kind::Bytes { .. } => exact_bytes(*number),
            _ => number.to_string(),
        },
        // A relative path would look right in every folder, so show the whole path.
        Value::Text(text) if one.setting.key == table::STORE.key => {
            store::place_of(text).map_or_else(|_| store::redacted(text), |place| place.to_string())
        }
        Value::None => "none".to_owned(),
        Value::Text(text) => store::redacted(text),
        Value::Duration(duration) => duration::exact(*duration),
        Value::List(items) if items.is_empty() => "none".to_owned(),
        Value::List(items) => items.join(", "),
    }
}

/// Bytes in the largest unit that divides them exactly: the settings read it back as the same number.
fn exact_bytes(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{} {unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Origin, Setting, setting::Raw};

    #[test]
    fn every_default_is_shown_in_a_form_that_can_be_written() {
        // The store is shown with its whole path, which depends on the folder.
        let is_written = |setting: &&&Setting| !setting.default.is_empty() && setting.key != table::STORE.key;
        for setting in table::ALL.iter().filter(is_written) {
            let value = setting.default_value();
            let one = Resolved { setting, value: value.clone(), origin: Origin::Default };
            let again = setting.read(&Raw::Text(shown(&one))).unwrap();
            assert_eq!(again.value, value, "{}: {}", setting.key, shown(&one));
        }
    }

    #[test]
    fn shares_and_bytes_are_shown_with_their_meaning() {
        let of = |setting, value| shown(&Resolved { setting, value, origin: Origin::Default });
        assert_eq!(of(&table::MEMORY_HIGH, Value::Number(800)), "0.8");
        assert_eq!(of(&table::HISTORY_MAX_BYTES, Value::Number(1 << 30)), "1 GiB");
        assert_eq!(of(&table::HISTORY_MAX_BYTES, Value::Number(1_500_000)), "1500000");
        assert_eq!(of(&table::MIN_FREE_DISK_BYTES, Value::Number(0)), "0");
        assert_eq!(of(&table::SLOTS, Value::Number(1024)), "1024");
    }
}
