//! The store of a server that was named: no database credentials on this machine.

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
    let store = RemoteStore::for_worker(&servers, options)
        .await
        .map_err(|error| Failure::new(Exit::Unreachable, error.to_string()))?;
    Ok(Opened { store, sqlite: None })
}
