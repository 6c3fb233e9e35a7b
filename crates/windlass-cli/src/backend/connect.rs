//! Finds the server or store that a command uses: the one that the caller named, else the store in this
//! folder, else the server at the usual address.
//!
//! A store is used through the server that runs on it. Its file is opened only if no server runs.
//! docs/decisions/0049 says why.

use std::{os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use serde::Deserialize;
use windlass_server::api::{ErrorCode, InfoView};
use windlass_sqlite::OpenError;

use super::{Backend, client::is_no_tls, credentials::Credentials, local::Local, remote::Remote};
use crate::{
    config::{Settings, table},
    failure::{Exit, Failure},
    store::{self, Access, Place},
};

/// How often to try again while another process holds the store, and how far apart: a command holds it
/// only for a moment.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// What the settings and this folder choose, before anything is asked.
#[derive(Debug)]
pub enum Choice {
    /// The server that the caller named.
    Server(String),
    /// The store that the caller named, or the one in this folder.
    Store(Place),
    /// Neither was named and no store is here: the server at the usual address.
    Usual,
}

impl Choice {
    /// Chooses. If both a server and a store are given, the nearer source wins: a flag before a variable,
    /// a variable before the file. At the same distance the server wins.
    ///
    /// # Errors
    /// If the store's address is not valid.
    pub fn of(settings: &Settings) -> Result<Self, Failure> {
        let (server, named) = (settings.origin(&table::SERVER), settings.origin(&table::STORE));
        if settings.is_given(&table::SERVER) && server.distance() <= named.distance() {
            return Ok(Self::Server(settings.text(&table::SERVER)));
        }
        let place = store::place(settings)?;
        let is_here = place.path().is_none_or(Path::exists);
        Ok(if settings.is_given(&table::STORE) || is_here { Self::Store(place) } else { Self::Usual })
    }

    /// The server to talk to, if one answers.
    ///
    /// # Errors
    /// If a server was named and does not answer.
    pub async fn server(&self, settings: &Settings) -> anyhow::Result<Option<Remote>> {
        match self {
            Self::Server(url) => {
                let server = Remote::new(url, &Credentials::from_settings(settings)?)?;
                server.ping().await?;
                Ok(Some(server))
            }
            Self::Store(Place::Sqlite(location)) => match location.path() {
                Some(path) => Ok(server_on(path, settings).await?),
                None => Ok(None),
            },
            // A database may have several servers, and none of them is better than the database itself.
            Self::Store(Place::Postgres(_)) => Ok(None),
            Self::Usual => {
                let server = usual(settings)?;
                match server.ping().await {
                    Ok(_) => Ok(Some(server)),
                    Err(error) if is_no_tls(&error) => Err(error.into()),
                    Err(_) => Ok(None),
                }
            }
        }
    }

    /// The server to watch. A store on PostgreSQL does not record which server serves it. The server at
    /// the usual address is taken, unless it says that it serves another store.
    ///
    /// # Errors
    /// If a server was named and does not answer.
    pub async fn server_to_watch(&self, settings: &Settings) -> anyhow::Result<Option<Remote>> {
        let Self::Store(place @ Place::Postgres(_)) = self else { return self.server(settings).await };
        let server = usual(settings)?;
        match server.info().await {
            Ok(info) => Ok((info.store.location == place.to_string()).then_some(server)),
            Err(error) if is_refusal(error.code) => Ok(Some(server)),
            Err(error) if is_no_tls(&error) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// What to say where a server is needed and none was found.
    pub fn no_server(&self, settings: &Settings) -> Failure {
        let usual = default_server(settings);
        let message = match self {
            Self::Store(place @ Place::Postgres(_)) => format!("no server for {place} at {usual}"),
            Self::Store(place) => format!("no server runs on {place}"),
            Self::Server(url) => format!("no server at {url}"),
            Self::Usual => format!("no server at {usual}"),
        };
        let last = match self {
            Self::Store(place) => place.path().and_then(owner).and_then(|owner| owner.address),
            _ => None,
        };
        Failure::new(Exit::Unreachable, message).hint(match last {
            Some(last) => {
                format!("start one with `windlass up`; the last one was at {last}: --server {last}")
            }
            None => "start one with `windlass up`, or name another with --server".to_owned(),
        })
    }
}

/// The server or store that a command uses.
pub struct Found {
    /// The server or store.
    pub backend: Box<dyn Backend>,
    /// Whether the caller named it or works in its folder. If neither, it may belong to another project.
    pub is_expected: bool,
}

/// Finds the server or store that a command uses.
///
/// # Errors
/// Exit code 5 with what was tried if there is neither a server nor a store.
pub async fn connect(settings: &Settings) -> anyhow::Result<Found> {
    let choice = Choice::of(settings)?;
    let is_expected = !matches!(choice, Choice::Usual);
    let found = |backend: Box<dyn Backend>| Found { backend, is_expected };
    if let Some(server) = choice.server(settings).await? {
        return Ok(found(Box::new(server)));
    }
    let location = match &choice {
        Choice::Store(Place::Sqlite(location)) => location,
        Choice::Store(place @ Place::Postgres(_)) => {
            let opened = store::open(settings, Access::Existing).await?;
            // One database can hold several stores.
            let shown = format!("{place}, schema {}", settings.text(&table::SCHEMA));
            return Ok(found(Box::new(Local::new(opened.store, shown))));
        }
        Choice::Server(_) | Choice::Usual => return Err(nothing_here(settings)?.into()),
    };
    let mut tries_left = BUSY_TRIES;
    loop {
        tries_left -= 1;
        match store::open_sqlite(location, settings, Access::Existing).await {
            Ok(opened) => return Ok(found(Box::new(Local::new(opened.store, location.to_string())))),
            // Another command may hold the store for a moment, or a server may have just started.
            Err(OpenError::InUse { .. }) if tries_left > 0 => tokio::time::sleep(BUSY_PAUSE).await,
            Err(error) => return Err(store::sqlite::failure(error).into()),
        }
        if let Some(server) = choice.server(settings).await? {
            return Ok(found(Box::new(server)));
        }
    }
}

/// The usual address of a server.
pub fn default_server(settings: &Settings) -> String {
    let scheme = if settings.text(&table::TLS_CERT).is_empty() { "http" } else { "https" };
    format!("{scheme}://{}", settings.text(&table::LISTEN))
}

/// The server at the usual address, whether one runs there or not.
fn usual(settings: &Settings) -> Result<Remote, Failure> {
    Remote::new(&default_server(settings), &Credentials::from_settings(settings)?)
}

/// The process that holds a store, as the store's lock file says.
#[derive(Debug, Deserialize)]
struct Owner {
    pid: u32,
    address: Option<String>,
}

/// The process that holds a store, or held it last.
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
pub async fn server_on(path: &Path, settings: &Settings) -> Result<Option<Remote>, Failure> {
    let Some(Owner { pid, address: Some(address) }) = owner(path) else { return Ok(None) };
    let credentials = Credentials::from_settings(settings)?;
    // The file may hold an old address that this process cannot parse.
    let Ok(server) = Remote::new(&address, &credentials) else { return Ok(None) };
    // The file outlives a killed process, and its port may belong to another server by now.
    Ok(match server.info().await {
        Ok(info) => serves(&info, pid, path).then(|| server.on_store(info.store.location)),
        // The server wants a token, or another one: the user must see that error.
        Err(error) if is_refusal(error.code) => Some(server),
        Err(_) => None,
    })
}

/// Whether a server is the process that the lock file names. Two containers can have the same process
/// number, so the file is compared too, where it can be seen from here.
fn serves(info: &InfoView, pid: u32, path: &Path) -> bool {
    let told = info.store.location.strip_prefix("sqlite:").map(Path::new).filter(|told| told.is_absolute());
    let is_another = told.is_some_and(|told| match (std::fs::metadata(told), std::fs::metadata(path)) {
        (Ok(told), Ok(own)) => (told.dev(), told.ino()) != (own.dev(), own.ino()),
        _ => false,
    });
    info.pid == pid && !is_another
}

fn is_refusal(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Unauthorized | ErrorCode::Forbidden | ErrorCode::RateLimited)
}

fn path(place: &Place) -> String {
    place.path().map_or_else(|| place.to_string(), |path| path.display().to_string())
}

fn nothing_here(settings: &Settings) -> Result<Failure, Failure> {
    let (server, place) = (default_server(settings), store::place(settings)?);
    Ok(Failure::new(Exit::Unreachable, format!("no server at {server} and no store at {}", path(&place)))
        .hint("start one with `windlass up`, or name it with --server or --store"))
}
