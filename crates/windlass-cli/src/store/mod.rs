//! Opens the store that the settings name. Only this module names concrete stores.

pub mod postgres;
pub mod remote;
pub mod sqlite;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_core::store::SharedStore;
use windlass_postgres::PostgresStore;
use windlass_sqlite::SqliteStore;

use crate::{
    config::{Settings, table},
    failure::Failure,
};

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Place {
    /// In a file of this machine, or in memory.
    Sqlite(windlass_sqlite::Location),
    /// On a server.
    Postgres(Box<windlass_postgres::Location>),
}

impl Place {
    /// The store's file, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(location) => location.path(),
            Self::Postgres(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(location) => location.fmt(f),
            Self::Postgres(location) => location.fmt(f),
        }
    }
}

/// The place of the store in the settings.
pub fn place(settings: &Settings) -> Result<Place, Failure> {
    place_of(&settings.text(&table::STORE))
}

/// The place that a store's address names.
pub fn place_of(text: &str) -> Result<Place, Failure> {
    let wrong = |message: String| {
        Failure::usage(message).hint("write it like sqlite:windlass.db or postgres://user@host/database")
    };
    if windlass_postgres::is_postgres(text) {
        return windlass_postgres::Location::parse(text)
            .map(|location| Place::Postgres(Box::new(location)))
            .map_err(|error| wrong(error.to_string()));
    }
    if !text.starts_with("sqlite:") && text.contains("://") {
        let message = format!("store {:?} is of a kind that this version does not have", redacted(text));
        return Err(wrong(message));
    }
    // Make it absolute: a relative path would look right in every folder.
    text.parse()
        .map(|location: windlass_sqlite::Location| Place::Sqlite(location.absolute()))
        .map_err(|_| wrong(format!("store {text:?} is not the address of a store")))
}

/// The store's file, if it has one.
pub fn path(settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    Ok(place(settings)?.path().map(Path::to_owned))
}

/// What a command may do if the store does not exist or has an older schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Create a file if it is missing; use a server's schema only if it exists.
    Usual,
    /// Create the store if it is missing, and migrate it.
    Migrate,
    /// Use an existing store only.
    Existing,
}

/// An open store of any kind.
#[derive(Clone)]
pub struct Opened {
    /// The store.
    pub store: SharedStore,
    sqlite: Option<Arc<SqliteStore>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.sqlite.is_some() { "an embedded store" } else { "a store on a server" })
    }
}

impl Opened {
    /// Records in the lock file where this process can be reached, for the next process that tries to
    /// open the file.
    pub fn set_address(&self, address: &str) {
        if let Some(store) = &self.sqlite {
            store.set_address(address);
        }
    }

    /// Resolves with the reason when the store has failed for good. A server that is unreachable may come
    /// back, so it does not count.
    pub fn fatal(&self) -> impl Future<Output = String> + Send + 'static {
        let fatal = self.sqlite.as_ref().map(|store| store.fatal());
        async move {
            match fatal {
                Some(fatal) => fatal.await,
                None => std::future::pending().await,
            }
        }
    }
}

/// Opens the store that the settings name.
pub async fn open(settings: &Settings, access: Access) -> Result<Opened, Failure> {
    match place(settings)? {
        Place::Sqlite(location) => open_sqlite(&location, settings, access).await.map_err(sqlite::failure),
        Place::Postgres(location) => {
            let mut options = postgres::options(settings)?;
            options.migrate = access == Access::Migrate;
            let store =
                PostgresStore::open(&location, options).await.map_err(|error| postgres::failure(&error))?;
            Ok(Opened { store, sqlite: None })
        }
    }
}

/// Opens an embedded store. The error has its own type, so that a caller can tell when to try again.
pub async fn open_sqlite(
    location: &windlass_sqlite::Location,
    settings: &Settings,
    access: Access,
) -> Result<Opened, windlass_sqlite::OpenError> {
    let mut options = sqlite::options(settings);
    if access == Access::Existing {
        options = options.existing_only();
    }
    let store = SqliteStore::open(location, options).await?;
    Ok(Opened { store: store.clone(), sqlite: Some(store) })
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
        assert_eq!(redacted("mysql://user:secret@db/x"), "mysql://***@db/x");
        assert_eq!(redacted("sqlite:windlass.db"), "sqlite:windlass.db");
    }
}
