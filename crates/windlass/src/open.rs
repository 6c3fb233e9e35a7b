//! From an address to a store.

use windlass_core::{Error, Result, store::SharedStore};

/// What [`open`] understands in this build, for the error that lists it.
#[cfg(feature = "sqlite")]
const SUPPORTED: &str = "sqlite:PATH and sqlite::memory:";
#[cfg(not(feature = "sqlite"))]
const SUPPORTED: &str = "none: build windlass with the feature \"sqlite\"";

/// Opens the store at an address, or makes it: `sqlite:PATH` for a file, `sqlite::memory:` for a store that is
/// gone with the process.
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
/// the store, [`Error::Unavailable`] if the system or the database refuses.
pub async fn open(url: &str) -> Result<SharedStore> {
    match url.split_once(':') {
        #[cfg(feature = "sqlite")]
        Some(("sqlite", _)) => sqlite(url).await,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_is_not_supported_says_which_are() {
        for url in ["postgres://user:secret@host/db", "windlass.db", "", "mysql:x"] {
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
