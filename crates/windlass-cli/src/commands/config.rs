//! `windlass config init|check`.

use std::{fs::OpenOptions, io::Write as _, path::PathBuf};

use clap::Subcommand;
use serde_json::json;

use crate::{
    config::{Value, amqp, docs},
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
    /// Check all settings and show what is in force and where it came from
    Check,
    /// Print docs/configuration.md
    #[command(hide = true)]
    Docs,
}

/// Writes the commented file. Needs no settings, so that a broken file does not stand in the way.
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
    std::io::stdout().lock().write_all(docs::page().as_bytes())?;
    Ok(Exit::Done)
}

/// Shows what is in force. Reaching this point means that everything is valid on its own.
pub fn check(session: &Session) -> anyhow::Result<Exit> {
    store::place(&session.settings)?;
    amqp::read(session.settings.file.as_deref())?;
    let out = session.out;
    if out.is_json() {
        let settings: Vec<_> = session
            .settings
            .resolved
            .iter()
            .map(|one| {
                json!({"key": one.setting.key, "value": shown(&one.value), "origin": one.origin.to_string()})
            })
            .collect();
        let file = session.settings.file.as_ref().map(|file| file.display().to_string());
        out.json(&json!({"file": file, "warnings": session.settings.warnings, "settings": settings}))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for one in &session.settings.resolved {
        let value = text::clean(&shown(&one.value));
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

fn shown(value: &Value) -> String {
    match value {
        Value::None => "none".to_owned(),
        Value::Text(text) => store::redacted(text),
        Value::Number(number) => number.to_string(),
        Value::Duration(duration) => duration::exact(*duration),
        Value::List(items) if items.is_empty() => "none".to_owned(),
        Value::List(items) => items.join(", "),
    }
}
