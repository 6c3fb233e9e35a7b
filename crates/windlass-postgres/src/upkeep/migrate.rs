//! The schema and its versions (SCHEMA-SAFE).
//!
//! A schema records its version and the oldest version whose programs may still write it. An additive
//! migration does not change the latter, so that workers of the version before go on. Nothing is ever
//! downgraded.

use std::sync::Arc;

use crate::{
    connection::{
        conn::{Commits, Conn, Server},
        driver::Driver,
        error::{Failure, OpenError},
        options::{Location, Options},
    },
    sql::Schema,
};

/// The oldest PostgreSQL that is supported.
const POSTGRES_MIN: u32 = 13;

/// A step of the schema.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The version that it leads to.
    pub version: u32,
    /// The oldest schema version whose programs may still write after this step.
    pub oldest_writer: u32,
    /// What it locks, as text for operators.
    pub locks: &'static str,
    /// The statements that it sends, written for the schema `windlass`.
    pub sql: &'static str,
}

/// Every step, in order.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        oldest_writer: 1,
        locks: "nothing that exists: it makes new tables only",
        sql: include_str!("../../sql/migrations/0001_first.sql"),
    },
    Migration {
        version: 2,
        oldest_writer: 1,
        locks: "the table of tasks, for as long as its catalogue row takes: no row is written",
        sql: include_str!("../../sql/migrations/0002_trace.sql"),
    },
    Migration {
        version: 3,
        oldest_writer: 1,
        locks: "table worker, for a moment: renewals wait meanwhile",
        sql: include_str!("../../sql/migrations/0003_admission.sql"),
    },
    Migration {
        version: 4,
        oldest_writer: 1,
        locks: "nothing that exists: it makes a new table only",
        sql: include_str!("../../sql/migrations/0004_token.sql"),
    },
    Migration {
        version: 5,
        oldest_writer: 1,
        locks: "the table of tasks and its primary key, against a vacuum only and for a moment",
        sql: include_str!("../../sql/migrations/0005_room.sql"),
    },
    Migration {
        version: 6,
        oldest_writer: 1,
        locks: "table doorbell, for a moment: enqueues, claims of idle workers and renewals wait meanwhile",
        sql: include_str!("../../sql/migrations/0006_offer.sql"),
    },
    Migration {
        version: 7,
        oldest_writer: 1,
        locks: "tables worker and token, for a moment: renewals wait meanwhile",
        sql: include_str!("../../sql/migrations/0007_owner.sql"),
    },
    Migration {
        version: 8,
        oldest_writer: 1,
        locks: "no table: it replaces a function",
        sql: include_str!("../../sql/migrations/0008_names.sql"),
    },
    Migration {
        version: 9,
        oldest_writer: 1,
        locks: "nothing that exists: it makes a new table only",
        sql: include_str!("../../sql/migrations/0009_epoch.sql"),
    },
    Migration {
        version: 10,
        oldest_writer: 1,
        locks: "the table of tasks, for as long as it takes to make the index of ready ones anew: about a second for each million of them",
        sql: include_str!("../../sql/migrations/0010_suspect.sql"),
    },
    Migration {
        version: 13,
        oldest_writer: 1,
        locks: "no table: function enqueue is made anew, and what was granted or revoked on it by name must be again",
        sql: include_str!("../../sql/migrations/0013_enqueue_says_more.sql"),
    },
    Migration {
        version: 14,
        oldest_writer: 1,
        locks: "table gate_todo and the function enqueue, for a moment: enqueues of jobs and workflows wait meanwhile",
        sql: include_str!("../../sql/migrations/0014_job_limit.sql"),
    },
    Migration {
        version: 15,
        oldest_writer: 1,
        locks: "the table of tasks, for as long as it takes to make the index of running ones anew: it is read once as a whole",
        sql: include_str!("../../sql/migrations/0015_running_by_claim.sql"),
    },
    Migration {
        version: 16,
        oldest_writer: 1,
        locks: "no table: the function enqueue gets another body, and keeps its arguments and what was granted on it",
        sql: include_str!("../../sql/migrations/0016_short_context.sql"),
    },
    Migration {
        version: 17,
        oldest_writer: 1,
        locks: "table lane, for a moment: claims, enqueues and settlements wait meanwhile",
        sql: include_str!("../../sql/migrations/0017_retired_lanes.sql"),
    },
    Migration {
        version: 18,
        oldest_writer: 1,
        locks: "table worker, for a moment",
        sql: include_str!("../../sql/migrations/0018_worker_counts.sql"),
    },
    Migration {
        version: 19,
        oldest_writer: 1,
        locks: "nothing that exists: it makes a new table only",
        sql: include_str!("../../sql/migrations/0019_session.sql"),
    },
    Migration {
        version: 20,
        oldest_writer: 1,
        locks: "nothing that exists: it makes new tables only",
        sql: include_str!("../../sql/migrations/0020_operators.sql"),
    },
];

/// The versions that a schema records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub version: u32,
    pub oldest_writer: u32,
}

/// What a migration did to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// Its version now.
    pub version: u32,
    /// Whether the schema was made.
    pub created: bool,
    /// Steps that were taken.
    pub steps: u32,
}

/// What a migration would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The version that was found; `None` if there is no schema yet.
    pub from: Option<u32>,
    /// The version that this program needs.
    pub to: u32,
    /// The steps, in order; empty if there is nothing to do.
    pub steps: Vec<PlannedStep>,
}

/// One step of a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The version that it leads to.
    pub version: u32,
    /// What it locks while it runs.
    pub locks: String,
    /// Whether workers of the version before must be stopped first.
    pub old_workers_must_stop: bool,
    /// The text that is sent, unchanged.
    pub sql: String,
}

/// Answers what [`migrate`] would do, and changes nothing.
///
/// # Errors
/// [`OpenError`], one line that says what to do.
pub async fn plan(location: &Location, options: &Options) -> Result<Plan, OpenError> {
    plan_with(location, options, MIGRATIONS).await
}

/// Makes the schema, or brings it forward.
///
/// # Errors
/// [`OpenError`], one line that says what to do.
pub async fn migrate(location: &Location, options: &Options) -> Result<Migrated, OpenError> {
    migrate_with(location, options, MIGRATIONS).await
}

/// Removes the schema with every task in it. For a caller that has made the store only for a short time.
///
/// # Errors
/// [`OpenError`], one line that says what to do.
pub async fn remove_schema(location: &Location, options: &Options) -> Result<(), OpenError> {
    let conn = connect(location, options, "migrate").await?;
    let text = format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", options.schema.as_str());
    conn.0.batch(&text).await.map_err(|failure| refused(location, "remove", &failure))
}

/// The same as [`plan`], with these steps.
pub async fn plan_with(
    location: &Location,
    options: &Options,
    migrations: &'static [Migration],
) -> Result<Plan, OpenError> {
    let conn = connect(location, options, "migrate").await?;
    look_ahead(&conn.0, location, &options.schema, migrations).await
}

/// The same as [`migrate`], with these steps.
pub async fn migrate_with(
    location: &Location,
    options: &Options,
    migrations: &'static [Migration],
) -> Result<Migrated, OpenError> {
    let conn = connect(location, options, "migrate").await?;
    apply(&conn.0, location, &options.schema, migrations).await
}

/// A connection of its own, with the thread that drives it.
pub(crate) async fn connect(
    location: &Location,
    options: &Options,
    purpose: &str,
) -> Result<(Conn, Driver), OpenError> {
    let unreachable = |reason: String| OpenError::Unreachable { location: location.to_string(), reason };
    let driver =
        Driver::start(&format!("windlass-{purpose}")).map_err(|error| unreachable(error.to_string()))?;
    let server = Arc::new(Server::new(location, options).map_err(OpenError::Invalid)?);
    let conn = server
        .connect(&driver, purpose, &server.patience(), Commits::Safe)
        .await
        .map_err(|refusal| unreachable(refusal.text))?;
    Ok((conn, driver))
}

async fn look_ahead(
    conn: &Conn,
    location: &Location,
    schema: &Schema,
    migrations: &'static [Migration],
) -> Result<Plan, OpenError> {
    check_server(conn, location).await?;
    let found = check(conn, location, schema, migrations).await?;
    let from = found.map(|found| found.version);
    let mut oldest_writer = found.map_or(0, |found| found.oldest_writer);
    let mut steps = Vec::new();
    for migration in migrations.iter().filter(|step| step.version > from.unwrap_or(0)) {
        steps.push(PlannedStep {
            version: migration.version,
            locks: migration.locks.to_owned(),
            old_workers_must_stop: from.is_some() && migration.oldest_writer > oldest_writer,
            sql: step_text(schema, migration),
        });
        oldest_writer = migration.oldest_writer;
    }
    Ok(Plan { from, to: newest(migrations), steps })
}

/// The text of one step, from BEGIN to COMMIT.
fn step_text(schema: &Schema, migration: &Migration) -> String {
    let name = schema.as_str();
    let make = if migration.version == 1 {
        // The right is checked first: a user that may not make schemas is refused even where the schema
        // exists.
        format!(
            "DO $$ BEGIN\n  IF to_regnamespace('{name}') IS NULL THEN CREATE SCHEMA \"{name}\"; END IF;\nEND $$;\n"
        )
    } else {
        String::new()
    };
    let record = schema.render(&format!(
        "INSERT INTO windlass.meta (name, value) VALUES ('schema_version', {}), ('oldest_writer', {})\n\
         ON CONFLICT (name) DO UPDATE SET value = excluded.value;",
        migration.version, migration.oldest_writer
    ));
    let text = schema.render(migration.sql);
    // If a session holds a table for long, the step fails. Otherwise all later sessions would wait behind the
    // step.
    format!("SET LOCAL lock_timeout = '5s';\n{make}{}\n{record}\n", text.trim())
}

/// Takes every step that is missing, each in a transaction of its own. Two processes that migrate at once
/// take turns.
pub(crate) async fn apply(
    conn: &Conn,
    location: &Location,
    schema: &Schema,
    migrations: &'static [Migration],
) -> Result<Migrated, OpenError> {
    check_server(conn, location).await?;
    let refused = |failure: Failure| refused(location, "migrate", &failure);
    let mut migrated = Migrated { version: 0, created: false, steps: 0 };
    loop {
        conn.batch("BEGIN").await.map_err(refused)?;
        let turn = format!(
            "SELECT pg_advisory_xact_lock(hashtextextended('windlass migrate {}', 0))",
            schema.as_str()
        );
        conn.batch(&turn).await.map_err(refused)?;
        let step = next_step(conn, location, schema, migrations).await;
        let (found, step) = match step {
            Ok(found) => found,
            Err(error) => {
                let _ = conn.batch("ROLLBACK").await;
                return Err(error);
            }
        };
        let Some(step) = step else {
            conn.batch("ROLLBACK").await.map_err(refused)?;
            migrated.version = found.map_or(0, |found| found.version);
            return Ok(migrated);
        };
        if let Err(failure) = conn.batch(&step_text(schema, step)).await {
            let _ = conn.batch("ROLLBACK").await;
            return Err(refused(failure));
        }
        conn.batch("COMMIT").await.map_err(refused)?;
        migrated.created |= found.is_none();
        migrated.steps += 1;
    }
}

async fn next_step(
    conn: &Conn,
    location: &Location,
    schema: &Schema,
    migrations: &'static [Migration],
) -> Result<(Option<Found>, Option<&'static Migration>), OpenError> {
    let found = check(conn, location, schema, migrations).await?;
    let from = found.map_or(0, |found| found.version);
    Ok((found, migrations.iter().find(|step| step.version > from)))
}

/// Refuses a server that is too old.
pub(crate) async fn check_server(conn: &Conn, location: &Location) -> Result<(), OpenError> {
    let number = conn.number("SELECT current_setting('server_version_num')::bigint").await;
    let number = number.map_err(|failure| refused(location, "ask", &failure))?;
    if number < u64::from(POSTGRES_MIN) * 10_000 {
        return Err(OpenError::TooOld {
            location: location.to_string(),
            found: format!("{}", number / 10_000),
            needed: POSTGRES_MIN,
        });
    }
    let read_only =
        conn.number("SELECT (current_setting('transaction_read_only') = 'on')::int::bigint").await;
    if read_only.map_err(|failure| refused(location, "ask", &failure))? == 1 {
        return Err(OpenError::ReadOnly { location: location.to_string() });
    }
    Ok(())
}

/// The versions of the schema, if there is one and this program may write it.
pub(crate) async fn check(
    conn: &Conn,
    location: &Location,
    schema: &Schema,
    migrations: &[Migration],
) -> Result<Option<Found>, OpenError> {
    let (found, known) = (read(conn, location, schema).await?, newest(migrations));
    match found {
        Some(found) if found.oldest_writer > known => Err(OpenError::NewerSchema {
            location: location.to_string(),
            schema: schema.as_str().to_owned(),
            found: found.version,
            oldest_writer: found.oldest_writer,
            known,
        }),
        found => Ok(found),
    }
}

pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.version)
}

async fn read(conn: &Conn, location: &Location, schema: &Schema) -> Result<Option<Found>, OpenError> {
    let number =
        async |text: String| conn.number(&text).await.map_err(|failure| refused(location, "ask", &failure));
    let name = schema.as_str();
    let has_meta = number(format!(
        "SELECT count(*) FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid \
         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
         WHERE n.nspname = '{name}' AND c.relname = 'meta' AND a.attname IN ('name', 'value')"
    ))
    .await?;
    if has_meta < 2 {
        let things = number(format!(
            "SELECT count(*) FROM pg_catalog.pg_namespace AS n WHERE n.nspname = '{name}' AND ( \
             EXISTS (SELECT 1 FROM pg_catalog.pg_class AS c WHERE c.relnamespace = n.oid) \
             OR EXISTS (SELECT 1 FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = n.oid) \
             OR EXISTS (SELECT 1 FROM pg_catalog.pg_type AS t WHERE t.typnamespace = n.oid))"
        ))
        .await?;
        return if things == 0 { Ok(None) } else { Err(foreign(location, schema)) };
    }
    let version = async |what: &str| {
        let text = schema.render(&format!("SELECT value FROM windlass.meta WHERE name = '{what}'"));
        match conn.number(&text).await {
            Ok(0) => Err(foreign(location, schema)),
            Ok(number) => Ok(number as u32),
            Err(failure) => Err(refused(location, "ask", &failure)),
        }
    };
    Ok(Some(Found {
        version: version("schema_version").await?,
        oldest_writer: version("oldest_writer").await?,
    }))
}

fn foreign(location: &Location, schema: &Schema) -> OpenError {
    OpenError::ForeignSchema { location: location.to_string(), schema: schema.as_str().to_owned() }
}

pub(crate) fn refused(location: &Location, action: &'static str, failure: &Failure) -> OpenError {
    OpenError::Refused { location: location.to_string(), action, reason: failure.error.to_string() }
}
