//! Opening the store that the settings name. The only place that names concrete stores.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_sqlite::{Durability, History, Location, OpenError, Options, SqliteStore};

use crate::{
    config::{Settings, table},
    failure::{Exit, Failure},
};

/// Where the store is.
pub fn location(settings: &Settings) -> Result<Location, Failure> {
    let text = settings.text(&table::STORE);
    let wrong = |message: String| {
        Failure::usage(message).hint("write it like sqlite:windlass.db or sqlite:/var/lib/windlass/tasks.db")
    };
    if !text.starts_with("sqlite:") && text.contains("://") {
        let message = format!("store {:?} is of a kind that this version does not have", redacted(&text));
        return Err(wrong(message));
    }
    text.parse().map_err(|_| wrong(format!("store {text:?} is not the address of a store")))
}

/// The store's file, if it has one.
pub fn path(settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    Ok(location(settings)?.path().map(Path::to_owned))
}

/// Opens the store; one that does not exist is made.
pub async fn open(settings: &Settings) -> Result<Arc<SqliteStore>, Failure> {
    SqliteStore::open(&location(settings)?, options(settings)).await.map_err(failure)
}

/// How the settings want the store to be opened.
pub fn options(settings: &Settings) -> Options {
    let durability = match settings.text(&table::DURABILITY).as_str() {
        "normal" => Durability::Normal,
        _ => Durability::Full,
    };
    let history = match settings.text(&table::HISTORY).as_str() {
        "off" => History::Off,
        _ => History::Kept,
    };
    Options::new().rules(settings.rules()).durability(durability).history(history).min_free(
        settings.number(&table::MIN_FREE_DISK_BYTES),
        settings.number(&table::MIN_FREE_DISK_PERCENT) as u8,
    )
}

/// What the user sees when a store cannot be opened.
pub fn failure(error: OpenError) -> Failure {
    match error {
        OpenError::InUse { path, pid, address } => {
            let by = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            let at = address.as_ref().map_or_else(String::new, |address| format!(" at {address}"));
            let failure = Failure::new(Exit::Refused, format!("{} is in use by {by}{at}", path.display()));
            match address {
                Some(address) => {
                    failure.hint(format!("send commands to it with --server {address}, or stop it first"))
                }
                None => failure.hint("stop it first, or name another store with --store"),
            }
        }
        OpenError::NotADatabase(path) => {
            Failure::new(Exit::Failed, format!("{} is not a Windlass store", path.display()))
                .hint("name another file with --store, or move this one away")
        }
        OpenError::NewerSchema { path, found, known, .. } => Failure::new(
            Exit::Refused,
            format!("{} has schema version {found}, and this program knows up to {known}", path.display()),
        )
        .hint("use the newer windlass that wrote it"),
        OpenError::NoSuchStore(path) => {
            Failure::new(Exit::Unreachable, format!("no store at {}", path.display()))
                .hint("start one with `windlass up`, or name it with --store")
        }
        OpenError::Exists(path) => Failure::new(Exit::Refused, format!("{} exists", path.display()))
            .hint("name another file, or add --force to replace it"),
        OpenError::Io { path, action, reason } => {
            Failure::new(Exit::Failed, format!("cannot {action} {}: {reason}", path.display()))
                .hint("check that the folder exists and may be written, or name another place with --store")
        }
        other => Failure::new(Exit::Failed, other.to_string()),
    }
}

/// An address without its password.
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_reach_an_error() {
        assert_eq!(redacted("postgres://user:secret@db/x"), "postgres://***@db/x");
        assert_eq!(redacted("sqlite:windlass.db"), "sqlite:windlass.db");
    }

    #[test]
    fn a_store_in_use_names_the_process_and_its_address() {
        let error = OpenError::InUse {
            path: "a.db".into(),
            pid: Some(7),
            address: Some("http://127.0.0.1:1".into()),
        };
        let failure = failure(error);
        assert_eq!(failure.exit, Exit::Refused);
        assert_eq!(failure.message, "a.db is in use by process 7 at http://127.0.0.1:1");
    }
}
