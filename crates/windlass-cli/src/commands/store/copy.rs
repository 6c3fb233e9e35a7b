//! `windlass store copy`: copies a whole store from a file to a PostgreSQL server.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use windlass_core::{
    Error, Store,
    store::Finding,
    transfer::{Counts, Marks, Part, Rows},
};
use windlass_postgres::{
    Notify, PostgresStore,
    import::{Import, Progress},
};
use windlass_sqlite::export::Export;

use crate::{
    failure::{Exit, Failure},
    output::{table::Table, text},
    session::Session,
    store::{self, Place},
};

/// Rows of one commit.
const BATCH_ROWS: usize = 1_000;
/// Audit findings that are printed one by one.
const FINDINGS_SHOWN: usize = 10;
/// How long the audit of the target may take.
const AUDIT_TIMEOUT: Duration = Duration::from_mins(30);
/// The name of the row with the number of audit findings.
const AUDIT: &str = "audit findings";

/// What to do with a whole store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy everything from a file to PostgreSQL; run it again to continue an interrupted copy
    Copy(CopyArgs),
}

/// Arguments of `store copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The store to copy, such as sqlite:windlass.db; it is only read, and no other program may use it
    /// meanwhile
    #[arg(long, value_name = "URL")]
    from: String,
    /// Where to, such as postgres://user@host/database; its schema must be empty
    #[arg(long, value_name = "URL")]
    to: String,
    /// Create the schema, or migrate it
    #[arg(long)]
    migrate: bool,
    /// Rows of one commit
    #[arg(long, hide = true, default_value_t = BATCH_ROWS)]
    batch_rows: usize,
    /// Exit after this many commits, as if killed
    #[arg(long, hide = true)]
    stop_after: Option<u64>,
}

/// Runs it.
pub async fn run(session: &Session, args: &CopyArgs) -> anyhow::Result<Exit> {
    let (from, to) = places(args)?;
    let mut options = store::postgres::options(&session.settings)?;
    options.migrate = args.migrate;
    // Check first what can be refused without the source: taking a snapshot of a large source is slow.
    let mut import =
        Import::connect(&to, &options).await.map_err(|error| store::postgres::failure(&error))?;
    let export = Export::open(&from, store::sqlite::options(&session.settings))
        .await
        .map_err(store::sqlite::failure)?;
    let copied = copy(session, args, &export, &mut import).await;
    let compared = match copied {
        Ok(was_complete) => {
            compare(&export, &import, &to, options.clone()).await.map(|seen| (was_complete, seen))
        }
        Err(error) => Err(error),
    };
    session.out.end_progress();
    let closed = export.close().await;
    let (was_complete, seen) = compared?;
    closed?;
    let is_same = seen.is_same();
    if session.out.is_json() {
        session.out.json(&json!({
            "from": from, "to": to.to_string(), "schema": options.schema.as_str(), "was_complete": was_complete,
            "same": is_same, "counts": seen.json(),
        }))?;
    } else {
        for line in seen.table().lines() {
            session.out.line(line)?;
        }
    }
    if was_complete {
        session.out.note(
            "this store was copied there before; nothing was changed now; the target may have changed since that copy",
        );
        return Ok(Exit::Done);
    }
    if !is_same {
        for finding in seen.findings.iter().take(FINDINGS_SHOWN) {
            session.out.warn(format!("in the copy: {} {}", finding.promise, finding.detail));
        }
        return Err(Failure::new(Exit::Failed, "the copy differs from its source")
            .hint("stop every program that uses either store, drop the schema and copy again")
            .into());
    }
    session.out.note(format!("{} copied to {to}, schema {}", from.display(), options.schema.as_str()));
    session.out.tip(format!(
        "start workers with `--store {to}`; keep {} for a while, but do not start a worker on it",
        from.display()
    ));
    Ok(Exit::Done)
}

/// The source file and the target server. No other direction is supported.
fn places(args: &CopyArgs) -> Result<(PathBuf, Box<windlass_postgres::Location>), Failure> {
    match (store::place_of(&args.from)?, store::place_of(&args.to)?) {
        (Place::Sqlite(from), Place::Postgres(to)) => match from.path() {
            Some(path) => Ok((path.to_owned(), to)),
            None => Err(Failure::usage("a store in memory cannot be copied")),
        },
        _ => Err(Failure::usage("a store is copied from a file to PostgreSQL, not in another direction")
            .hint("write --from sqlite:FILE --to postgres://user@host/database")),
    }
}

/// Copies what is missing; answers whether everything was already there.
async fn copy(
    session: &Session,
    args: &CopyArgs,
    export: &Export,
    import: &mut Import,
) -> anyhow::Result<bool> {
    let marks = export.marks()?;
    let lanes = all_lanes(export)?;
    let begun = import.begin(export.id(), &marks, &lanes).await.map_err(refusal)?;
    if begun == Progress::Done {
        return Ok(true);
    }
    if begun != (Progress::At { part: Part::Lanes, rows: 0 }) {
        session.out.note("an earlier copy was interrupted; going on");
    }
    let total: u64 = export.counts()?.values().sum();
    let mut batches = 0;
    let mut copied = 0;
    while let Progress::At { part, rows } = import.progress() {
        let mut stream = export.rows(part, rows);
        loop {
            let rows = stream.next(args.batch_rows.max(1))?;
            import.take(&rows, &marks).await.map_err(refusal)?;
            if rows.is_empty() {
                break;
            }
            copied += rows.len() as u64;
            batches += 1;
            session.out.progress(format!(
                "{}: {} of about {} rows copied",
                part.as_str(),
                text::count(copied),
                text::count(total)
            ));
            if args.stop_after.is_some_and(|most| batches >= most) {
                // Exit as if killed: clean up nothing.
                std::process::exit(i32::from(Exit::Interrupted as u8));
            }
        }
        if part == Part::Keys {
            finish(export, import, &marks).await?;
        }
    }
    Ok(false)
}

/// All lanes at once; there are few. A copy that continues must know the numbers of the lanes that it has
/// already copied.
fn all_lanes(export: &Export) -> Result<Vec<windlass_core::transfer::LaneRow>, Error> {
    let mut stream = export.rows(Part::Lanes, 0);
    let mut lanes = Vec::new();
    while let Rows::Lanes(rows) = stream.next(BATCH_ROWS)?
        && !rows.is_empty()
    {
        lanes.extend(rows);
    }
    Ok(lanes)
}

async fn finish(export: &Export, import: &mut Import, marks: &Marks) -> anyhow::Result<()> {
    let paused = export.store().paused_queues().await?;
    let paused: Vec<String> = paused.iter().map(|queue| queue.as_str().to_owned()).collect();
    Ok(import.finish(marks, &paused).await.map_err(refusal)?)
}

/// Turns a refusal into a failure whose hint says what to do.
fn refusal(error: Error) -> Failure {
    match &error {
        Error::Conflict(text) => match text.rsplit_once("; ") {
            Some((message, hint)) => Failure::new(Exit::Refused, message).hint(hint),
            None => Failure::new(Exit::Refused, text),
        },
        _ => Failure::of(&anyhow::Error::new(error)),
    }
}

/// The counts of both sides.
struct Seen {
    source: Counts,
    target: Counts,
    /// What the audit found in the target.
    findings: Vec<Finding>,
}

impl Seen {
    fn is_same(&self) -> bool {
        self.names().all(|name| self.source.get(name) == self.target.get(name))
    }

    /// The names that either side has, each once.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.source.keys().chain(self.target.keys().filter(|name| !self.source.contains_key(*name)))
    }

    fn rows(&self) -> impl Iterator<Item = (&String, u64, u64)> {
        let of = |counts: &Counts, name: &String| counts.get(name).copied().unwrap_or_default();
        self.names().map(move |name| (name, of(&self.source, name), of(&self.target, name)))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["what", "source", "target"]);
        for (name, source, target) in self.rows() {
            table.row(vec![name.clone(), text::count(source), text::count(target)]);
        }
        table
    }

    fn json(&self) -> Value {
        let rows = self.rows();
        rows.map(|(name, source, target)| json!({"what": name, "source": source, "target": target})).collect()
    }
}

/// Counts the rows of both sides, and audits them.
async fn compare(
    export: &Export,
    import: &Import,
    to: &windlass_postgres::Location,
    mut options: windlass_postgres::Options,
) -> anyhow::Result<Seen> {
    let (mut source, mut target) = (export.counts()?, import.counts().await?);
    options.notify = Notify::Off;
    options.migrate = false;
    // The audit of a large store reads all of it and takes long.
    options.statement_timeout = AUDIT_TIMEOUT;
    let store = PostgresStore::open(to, options).await.map_err(|error| store::postgres::failure(&error))?;
    let findings = store.audit().await?;
    store.close().await?;
    source.insert(AUDIT.to_owned(), export.store().audit().await?.len() as u64);
    target.insert(AUDIT.to_owned(), findings.len() as u64);
    Ok(Seen { source, target, findings })
}
