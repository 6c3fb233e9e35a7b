//! The store of a named server: this machine needs no database credentials.

use windlass::inside::Waiting;
use windlass_core::Error;
use windlass_remote::{Options, RemoteStore, Servers};

use super::Opened;
use crate::{
    backend::credentials::Credentials,
    config::{Settings, table},
    failure::{Exit, Failure},
};

/// Connects to one of the servers that the settings name.
pub async fn open(settings: &Settings) -> Result<Opened, Failure> {
    if settings.is_given(&table::STORE) {
        return Err(Failure::usage("--server and --store are both given")
            .hint("a worker takes its tasks from a server or from a store"));
    }
    let servers: Servers =
        settings.text(&table::SERVER).parse().map_err(|error: Error| Failure::usage(error.to_string()))?;
    let Credentials { token, ca } = Credentials::from_settings(settings)?;
    let options = Options { token, ca, ..Options::default() };
    // Workers and servers may start in any order, so wait for a server that cannot be reached yet. A
    // refusal would only be repeated: return it.
    let mut waiting = Waiting::new(u64::from(std::process::id()));
    let store = loop {
        match RemoteStore::for_worker(&servers, options.clone()).await {
            Ok(store) => break store,
            Err(error @ (Error::Unavailable(_) | Error::Unknown(_))) => {
                waiting.pause(&error, "no server can be used yet; trying again until one can").await;
            }
            Err(error) => return Err(refused(&error)),
        }
    };
    Ok(Opened { store, sqlite: None })
}

fn refused(error: &Error) -> Failure {
    let failure = Failure::new(Exit::Refused, error.to_string());
    match error {
        Error::Unsupported(_) => failure.hint("this worker cannot work with the version of that server"),
        _ => failure.hint("check the token (--token-file or WINDLASS_TOKEN, with the scope work) and --ca"),
    }
}
