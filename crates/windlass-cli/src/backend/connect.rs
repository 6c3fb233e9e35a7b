//! Finding whom to talk to: the server that was named, else the one that runs on the store, else the one at the
//! usual address, else the store itself.

use std::{path::Path, time::Duration};

use serde::Deserialize;
use windlass_server::api::ErrorCode;
use windlass_sqlite::OpenError;

use super::{Backend, credentials::Credentials, local::Local, remote::Remote};
use crate::{
    config::{Settings, table},
    failure::{Exit, Failure},
    store::{self, Access, Place},
};

/// How often a store that another process holds is tried again, and how far apart: a command needs it for a
/// moment only.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Finds whom to talk to.
///
/// # Errors
/// Exit code 5 with what was tried if there is neither a server nor a store.
pub async fn connect(settings: &Settings) -> anyhow::Result<Box<dyn Backend>> {
    if let Some(server) = find_server(settings).await? {
        return Ok(Box::new(server));
    }
    let location = match store::place(settings)? {
        Place::Sqlite(location) => location,
        place @ Place::Postgres(_) => {
            let opened = store::open(settings, Access::Existing).await?;
            return Ok(Box::new(Local::new(opened.store, place.to_string())));
        }
    };
    if let Some(path) = location.path()
        && !path.exists()
    {
        return Err(nobody(settings, path).into());
    }
    let mut tries_left = BUSY_TRIES;
    loop {
        tries_left -= 1;
        match store::open_sqlite(&location, settings, Access::Existing).await {
            Ok(opened) => return Ok(Box::new(Local::new(opened.store, location.to_string()))),
            // Another command has it for a moment, or a server has just started.
            Err(OpenError::InUse { .. }) if tries_left > 0 => tokio::time::sleep(BUSY_PAUSE).await,
            Err(error) => return Err(store::sqlite::failure(error).into()),
        }
        if let Some(server) = find_server(settings).await? {
            return Ok(Box::new(server));
        }
    }
}

/// The server to talk to, if one answers.
///
/// # Errors
/// If a server was named and does not answer.
pub async fn find_server(settings: &Settings) -> anyhow::Result<Option<Remote>> {
    if settings.is_given(&table::SERVER) {
        let server = Remote::new(&settings.text(&table::SERVER), &Credentials::from_settings(settings)?)?;
        server.ping().await?;
        return Ok(Some(server));
    }
    if let Some(path) = store::path(settings)?
        && let Some(server) = server_on(&path, settings).await?
    {
        return Ok(Some(server));
    }
    if settings.is_given(&table::STORE) {
        // Somebody named a store: a server that happens to run elsewhere is not what they mean.
        return Ok(None);
    }
    let server = usual(settings)?;
    Ok(server.ping().await.is_ok().then_some(server))
}

/// The usual address of a server.
pub fn default_server(settings: &Settings) -> String {
    let scheme = if settings.text(&table::TLS_CERT).is_empty() { "http" } else { "https" };
    format!("{scheme}://{}", settings.text(&table::LISTEN))
}

/// The server at the usual address, whether one is there or not.
pub fn usual(settings: &Settings) -> Result<Remote, Failure> {
    Remote::new(&default_server(settings), &Credentials::from_settings(settings)?)
}

/// Who holds a store, as its lock file says.
#[derive(Debug, Deserialize)]
struct Owner {
    pid: u32,
    address: Option<String>,
}

/// Who holds a store, or held it last.
fn owner(path: &Path) -> Option<Owner> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    serde_json::from_str(&std::fs::read_to_string(lock).ok()?).ok()
}

/// The process that holds a store, or held it last.
pub fn owner_pid(path: &Path) -> Option<u32> {
    owner(path).map(|owner| owner.pid)
}

/// The server that holds a store.
async fn server_on(path: &Path, settings: &Settings) -> Result<Option<Remote>, Failure> {
    let Some(owner) = owner(path) else { return Ok(None) };
    let Some(address) = owner.address else { return Ok(None) };
    let credentials = Credentials::from_settings(settings)?;
    // What is left in the file may be an address that cannot be spoken to from here.
    let Ok(server) = Remote::new(&address, &credentials) else { return Ok(None) };
    // The file outlives a killed process, and its port may be somebody else's by now.
    Ok(match server.info().await {
        Ok(info) => (info.pid == owner.pid).then_some(server),
        // It wants a token, or another one: that is what the user has to hear.
        Err(error)
            if matches!(
                error.code,
                ErrorCode::Unauthorized | ErrorCode::Forbidden | ErrorCode::RateLimited
            ) =>
        {
            Some(server)
        }
        Err(_) => None,
    })
}

fn nobody(settings: &Settings, path: &Path) -> Failure {
    let shown = if path.is_relative() && !path.starts_with(".") {
        format!("./{}", path.display())
    } else {
        path.display().to_string()
    };
    let message = if settings.is_given(&table::STORE) {
        format!("no store at {shown}")
    } else {
        format!("no server at {} and no store at {shown}", default_server(settings))
    };
    Failure::new(Exit::Unreachable, message)
        .hint("start one with `windlass up`, or name it with --server or --store")
}
