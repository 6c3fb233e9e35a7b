//! Opens a store by its address.

use windlass_core::{Error, Result, store::SharedStore};

/// The addresses that [`open`] supports in this build, for the error that lists them.
const SUPPORTED: &str = match (cfg!(feature = "sqlite"), cfg!(feature = "postgres")) {
    (true, true) => "sqlite:PATH, sqlite::memory: and postgres://…",
    (true, false) => "sqlite:PATH and sqlite::memory:",
    (false, true) => "postgres://…",
    (false, false) => "none: build windlass with the feature \"sqlite\" or \"postgres\"",
};

/// How [`open_with`] opens a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file is always brought forward"))]
    migrate: bool,
    schema: Option<String>,
}

impl OpenOptions {
    /// The defaults, as [`open`] uses them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a schema of PostgreSQL is first created or migrated, as `windlass migrate` does. Simultaneous
    /// processes do so one after another. A file is always migrated.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// The schema of PostgreSQL that holds the store; `windlass` without this call.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }
}

/// Opens the store at an address. `sqlite:PATH` is a file and `sqlite::memory:` a store that is gone with the
/// process; both are created if they do not exist. `postgres://…` is the schema `windlass` of a database,
/// which `windlass migrate` or [`open_with`] creates.
///
/// ```
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let store = windlass::open("sqlite::memory:").await?;
/// assert_eq!(store.info().await?.history_rows, 0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::Invalid`] for an address that names no supported store, [`Error::Conflict`] if another process
/// has the store open or its schema is missing or of another version, [`Error::Unavailable`] if the system or
/// the database reports an error.
pub async fn open(url: &str) -> Result<SharedStore> {
    open_with(url, OpenOptions::new()).await
}

/// Opens the store at an address with options: creates or migrates the schema of PostgreSQL, or uses a schema
/// of another name.
///
/// ```no_run
/// use windlass::{Client, OpenOptions};
///
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let store = windlass::open_with("postgres://app@localhost/app", OpenOptions::new().migrate(true)).await?;
/// let client = Client::new(store);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`open`]; [`Error::Invalid`] also for a schema that is not a plain name, or for a schema with SQLite.
pub async fn open_with(url: &str, options: OpenOptions) -> Result<SharedStore> {
    match url.split_once(':') {
        #[cfg(feature = "sqlite")]
        Some(("sqlite", _)) => sqlite(url, &options).await,
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => postgres(url, options).await,
        Some((scheme, _)) => {
            let scheme: String = scheme.chars().take(40).collect();
            Err(Error::invalid(format!(
                "no store for {scheme:?} addresses in this build; supported: {SUPPORTED}"
            )))
        }
        // The text is not shown: an address without a scheme may be anything, even a secret.
        None => {
            Err(Error::invalid(format!("a store's address starts with its kind; supported: {SUPPORTED}")))
        }
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(url: &str, options: &OpenOptions) -> Result<SharedStore> {
    use windlass_sqlite::{Location, OpenError, Options, SqliteStore};

    if options.schema.is_some() {
        return Err(Error::invalid("a file has no schemas; leave the schema out, or use another file"));
    }
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
async fn postgres(url: &str, given: OpenOptions) -> Result<SharedStore> {
    use windlass_postgres::{Location, OpenError, Options, PostgresStore, Schema};

    let location = Location::parse(url).map_err(|error| Error::invalid(error.to_string()))?;
    let schema = given.schema.map(|name| Schema::new(&name)).transpose().map_err(Error::Invalid)?;
    let schema = schema.unwrap_or_default();
    let options = Options { migrate: given.migrate, schema, ..Options::default() };
    match PostgresStore::open(&location, options).await {
        Ok(store) => Ok(store),
        Err(OpenError::Invalid(reason)) => Err(Error::Invalid(reason)),
        Err(error @ (OpenError::Unreachable { .. } | OpenError::Refused { .. })) => {
            Err(Error::Unavailable(error.to_string()))
        }
        // The remedy for a program comes first: its author reads this.
        Err(OpenError::NoSchema { location, schema }) => Err(Error::Conflict(format!(
            "{location} has no schema {schema:?} of Windlass; {}",
            remedy(&schema)
        ))),
        Err(OpenError::OlderSchema { location, schema, found, needed }) => Err(Error::Conflict(format!(
            "schema {schema:?} at {location} has version {found}, and this program needs {needed}; {}",
            remedy(&schema)
        ))),
        Err(error) => Err(Error::Conflict(error.to_string())),
    }
}

/// How to create or migrate a schema, from Rust and from the command line.
#[cfg(feature = "postgres")]
fn remedy(schema: &str) -> String {
    let (call, flag) = match schema {
        windlass_postgres::DEFAULT_SCHEMA => (String::new(), String::new()),
        other => (format!(".schema({other:?})"), format!(" --schema {other}")),
    };
    format!(
        "open it with windlass::open_with(url, OpenOptions::new(){call}.migrate(true)), or run \
         `windlass migrate --store URL{flag}` once"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unsupported_address_names_the_supported_ones() {
        for url in ["mysql://user:secret@host/db", "windlass.db", "", "mysql:x"] {
            let error = open(url).await.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("supported: "), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_file_takes_migrate_and_refuses_a_schema() {
        let options = OpenOptions::new().migrate(true);
        assert!(open_with("sqlite::memory:", options.clone()).await.is_ok());
        let error = open_with("sqlite::memory:", options.schema("s")).await.err().unwrap();
        assert!(matches!(&error, Error::Invalid(text) if text.contains("no schemas")), "{error}");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_sqlite_address_without_a_path_names_the_format() {
        let error = open("sqlite:").await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("expected sqlite:PATH"), "{error}");
    }
}
