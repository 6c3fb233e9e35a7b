//! The embedded store, with the options from the settings.

use windlass_sqlite::{Durability, History, OpenError, Options};

use crate::{
    config::{Settings, table},
    failure::{Exit, Failure},
};

/// The store's options from the settings.
pub fn options(settings: &Settings) -> Options {
    let durability = match settings.text(&table::DURABILITY).as_str() {
        "normal" => Durability::Normal,
        _ => Durability::Full,
    };
    let history = match settings.text(&table::HISTORY).as_str() {
        "off" => History::Off,
        _ => History::Kept,
    };
    let durable_claims = settings.text(&table::CLAIMS) == "durable";
    let options =
        Options::new().rules(settings.rules()).durability(durability).durable_claims(durable_claims);
    options.history(history).min_free(
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
            .hint("name another file, or move this one away"),
        OpenError::Io { path, action, reason } => {
            Failure::new(Exit::Failed, format!("cannot {action} {}: {reason}", path.display()))
                .hint("check that the folder exists and may be written, or name another place with --store")
        }
        other => Failure::new(Exit::Failed, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
