//! `windlass backup FILE`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use windlass_core::Store as _;
use windlass_sqlite::OpenError;

use crate::{
    backend::connect::{self, Choice},
    config::{Settings, table},
    failure::{Exit, Failure},
    output::text,
    session::Session,
    store::{self, Place},
};

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to write; it must not exist
    file: PathBuf,
}

/// Runs it.
pub async fn run(session: &Session, args: &BackupArgs) -> anyhow::Result<Exit> {
    let from = source(&session.settings).await?;
    copy(&session.settings, &from, &args.file).await?;
    let bytes = std::fs::metadata(&args.file)?.len();
    if session.out.is_json() {
        session.out.json(&json!({"file": args.file, "bytes": bytes, "store": from}))?;
    } else {
        session.out.note(format!("{} written ({})", args.file.display(), text::bytes(bytes)));
        session.out.tip(format!("bring it back with `windlass restore {}`", args.file.display()));
    }
    Ok(Exit::Done)
}

/// The store's file: that of the running server if one was found, else the one in the settings.
pub async fn source(settings: &Settings) -> anyhow::Result<PathBuf> {
    let own = file(settings, "copied")?;
    if !settings.is_given(&table::STORE)
        && let Some(server) = Choice::of(settings)?.server(settings).await?
    {
        let info = crate::backend::Backend::info(&server).await?;
        let path = PathBuf::from(info.store.location.trim_start_matches("sqlite:"));
        // The server reports a path of its own machine. On this machine the path may be missing or be
        // another store.
        return if connect::owner_pid(&path) == Some(info.pid) {
            Ok(path)
        } else {
            Err(Failure::new(
                Exit::NotFound,
                format!("the server's store {} is not reachable from here", info.store.location),
            )
            .hint("run it on the server's machine, and name the store with --store sqlite:/path/to/file")
            .into())
        };
    }
    own.ok_or_else(|| Failure::usage("a store in memory cannot be copied").into())
}

/// The store's file. A store on PostgreSQL has none and is refused: PostgreSQL has its own tools for
/// copies.
pub fn file(settings: &Settings, what: &str) -> Result<Option<PathBuf>, Failure> {
    match store::place(settings)? {
        Place::Sqlite(location) => Ok(location.path().map(Path::to_owned)),
        Place::Postgres(_) => {
            let schema = settings.text(&table::SCHEMA);
            Err(Failure::usage(format!("a store on PostgreSQL is {what} with PostgreSQL's own tools"))
                .hint(format!("pg_dump --schema={schema} writes a copy, pg_restore brings it back")))
        }
    }
}

/// Writes a consistent copy of a store, whether a process runs on it or not.
pub async fn copy(settings: &Settings, from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        return Err(store::sqlite::failure(OpenError::Exists(to.to_owned())).into());
    }
    let location = windlass_sqlite::Location::File(from.to_owned());
    let options = store::sqlite::options(settings).existing_only();
    match windlass_sqlite::SqliteStore::open(&location, options).await {
        Ok(open) => {
            open.backup(to).await?;
            open.close().await?;
            Ok(())
        }
        Err(OpenError::InUse { .. }) => {
            let (from, to) = (from.to_owned(), to.to_owned());
            tokio::task::spawn_blocking(move || copy_running(&from, &to)).await?
        }
        Err(error) => Err(store::sqlite::failure(error).into()),
    }
}

/// Copies a store while another process runs on it. In WAL mode this reader does not block the writer.
fn copy_running(from: &Path, to: &Path) -> anyhow::Result<()> {
    let wrong = |error: rusqlite::Error| {
        Failure::new(Exit::Failed, format!("cannot copy {} to {}: {error}", from.display(), to.display()))
            .hint("check that the folder exists and may be written")
    };
    let source = rusqlite::Connection::open_with_flags(from, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(wrong)?;
    // Write under another name first: a half-written file must not be taken for a copy.
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let copied = copy_pages(&source, &partial).map_err(wrong);
    if let Err(failure) = copied {
        let _ = std::fs::remove_file(&partial);
        return Err(failure.into());
    }
    std::fs::File::open(&partial)?.sync_all()?;
    std::fs::rename(&partial, to)?;
    Ok(())
}

fn copy_pages(source: &rusqlite::Connection, to: &Path) -> rusqlite::Result<()> {
    let mut target = rusqlite::Connection::open(to)?;
    {
        let backup = rusqlite::backup::Backup::new(source, &mut target)?;
        // All pages in one step: one snapshot, even while the writer is busy.
        match backup.step(-1)? {
            rusqlite::backup::StepResult::Done => {}
            _ => {
                return Err(rusqlite::Error::ToSqlConversionFailure("the store is locked; try again".into()));
            }
        }
    }
    // A copy must be one file. In WAL mode a reader would leave a log beside it.
    target.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    target.close().map_err(|(_, error)| error)
}
