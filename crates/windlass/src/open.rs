//! From an address to a store.

use windlass_core::{Error, Result, store::SharedStore};

/// What [`open`] understands in this build, for the error that lists it.
const SUPPORTED: &str = match (cfg!(feature = "sqlite"), cfg!(feature = "postgres")) {
    (true, true) => "sqlite:PATH, sqlite::memory: and postgres://…",
    (true, false) => "sqlite:PATH and sqlite::memory:",
    (false, true) => "postgres://…",
    (false, false) => "none: build windlass with the feature \"sqlite\" or \"postgres\"",
};

/// Opens the store at an address. `sqlite:PATH` is a file and `sqlite::memory:` a store that is gone with the process; both
/// are made if they are not there. `postgres://…` is the schema `windlass` of a database, which `windlass migrate` makes.
///
/// ```
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let store = windlass::open("sqlite::memory:").await?;
/// assert_eq!(store.info().await?.history_rows, 0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::Invalid`] for an address that names no supported store, [`Error::Conflict`] if another process has
/// the store or its schema is missing or of another version, [`Error::Unavailable`] if the system or the database refuses.
pub async fn open(url: &str) -> Result<SharedStore> {
    match url.split_once(':') {
        #[cfg(feature = "sqlite")]
        Some(("sqlite", _)) => sqlite(url).await,
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => postgres(url).await,
        Some((scheme, _)) => {
            let scheme: String = scheme.chars().take(40).collect();
            Err(Error::invalid(format!(
                "no store for {scheme:?} addresses in this build; supported: {SUPPORTED}"
            )))
        }
        // The text is not shown: what has no scheme may be anything, a secret included.
        None => {
            Err(Error::invalid(format!("a store's address starts with its kind; supported: {SUPPORTED}")))
        }
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(url: &str) -> Result<SharedStore> {
    use windlass_sqlite::{Location, OpenError, Options, SqliteStore};

    let location: Location = url.parse().map_err(|error| Error::invalid(format!("{error}")))?;
    match SqliteStore::open(&location, Options::default()).await {
        Ok(store) => Ok(store),
        Err(error @ (OpenError::Io { .. } | OpenError::Sqlite { .. })) => {
            Err(Error::Unavailable(error.to_string()))
        }
        Err(error) => Err(Error::Conflict(error.to_string())),
    }
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<SharedStore> {
    use windlass_postgres::{Location, OpenError, Options, PostgresStore};

    let location = Location::parse(url).map_err(|error| Error::invalid(error.to_string()))?;
    match PostgresStore::open(&location, Options::default()).await {
        Ok(store) => Ok(store),
        Err(OpenError::Invalid(reason)) => Err(Error::Invalid(reason)),
        Err(error @ (OpenError::Unreachable { .. } | OpenError::Refused { .. })) => {
            Err(Error::Unavailable(error.to_string()))
        }
        Err(error) => Err(Error::Conflict(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_is_not_supported_says_which_are() {
        for url in ["mysql://user:secret@host/db", "windlass.db", "", "mysql:x"] {
            let error = open(url).await.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("supported: "), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_sqlite_address_without_a_path_says_what_is_expected() {
        let error = open("sqlite:").await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("expected sqlite:PATH"), "{error}");
    }
}
