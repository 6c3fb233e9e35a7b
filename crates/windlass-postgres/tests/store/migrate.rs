//! The schema and its versions (SCHEMA-SAFE).

use windlass_core::Store;
use windlass_postgres::{
    Migrated, OpenError, Options,
    inside::{self, Migration},
    migrate, plan,
};
use windlass_scratch::{Cluster, ClusterOptions};

use crate::{
    life::whole_life,
    place::{Place, count, tasks},
    support::{self, PostgresHarness},
};

/// All that this program needs, as one step; the steps after it are invented.
const FIRST: Migration = Migration {
    version: 1,
    oldest_writer: 1,
    locks: "nothing",
    // All that programs of today need, in one step.
    sql: concat!(
        include_str!("../../sql/migrations/0001_first.sql"),
        include_str!("../../sql/migrations/0002_trace.sql"),
        include_str!("../../sql/migrations/0003_admission.sql"),
        include_str!("../../sql/migrations/0006_offer.sql"),
        include_str!("../../sql/migrations/0009_epoch.sql"),
        include_str!("../../sql/migrations/0010_suspect.sql"),
        include_str!("../../sql/migrations/0017_retired_lanes.sql")
    ),
};
/// An additive change: programs of version 1 may still write.
const SECOND: Migration = Migration {
    version: 2,
    oldest_writer: 1,
    locks: "table task, for a moment",
    sql: "ALTER TABLE windlass.task ADD COLUMN colour text;",
};
/// A change that programs of version 2 would break.
const THIRD: Migration = Migration {
    version: 3,
    oldest_writer: 3,
    locks: "table task, for a moment",
    sql: "ALTER TABLE windlass.task DROP COLUMN colour;",
};
/// The second statement of this step fails.
const BROKEN: Migration = Migration {
    version: 2,
    oldest_writer: 2,
    locks: "nothing",
    sql: "CREATE TABLE windlass.half (n integer);\nCREATE TABLE windlass.half (n integer);",
};

const V1: &[Migration] = &[FIRST];
const V2: &[Migration] = &[FIRST, SECOND];
const V3: &[Migration] = &[FIRST, SECOND, THIRD];

const VERSION: &str = "SELECT value FROM {s}.meta WHERE name = 'schema_version'";

#[tokio::test]
async fn a_store_without_a_schema_says_how_to_make_it() {
    let place = Place::new();
    let error = place.open().await.unwrap_err();
    assert!(matches!(&error, OpenError::NoSchema { schema, .. } if *schema == place.schema), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("windlass migrate") && text.contains("--migrate"), "{text}");
}

#[tokio::test]
async fn a_plan_tells_everything_and_changes_nothing() {
    let place = Place::new();
    let made = plan(&place.location(), &place.options()).await.unwrap();
    // Versions rise from step to step, and may leave numbers out.
    assert_eq!((made.from, made.to), (None, made.steps.last().unwrap().version));
    assert!(made.steps.is_sorted_by(|one, next| one.version < next.version));
    let step = &made.steps[0];
    assert!(step.sql.contains("CREATE TABLE") && step.sql.contains(&place.schema), "{}", step.sql);
    assert!(!step.locks.is_empty() && !step.old_workers_must_stop, "a new schema has no old workers");
    let schemas = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", place.schema);
    assert_eq!(place.number(&schemas).await, 0);
    inside::migrate(&place.location(), &place.options(), V1).await.unwrap();
    let ahead = inside::plan(&place.location(), &place.options(), V3).await.unwrap();
    assert_eq!((ahead.from, ahead.to), (Some(1), 3));
    let stops: Vec<_> = ahead.steps.iter().map(|step| (step.version, step.old_workers_must_stop)).collect();
    assert_eq!(stops, [(2, false), (3, true)]);
    assert_eq!(ahead.steps[0].locks, "table task, for a moment");
    assert_eq!(place.number(VERSION).await, 1);
    let done = inside::plan(&place.location(), &place.options(), V1).await.unwrap();
    assert_eq!(done.steps, [], "nothing to do");
}

#[tokio::test]
async fn a_planned_step_can_be_run_by_hand() {
    let place = Place::new();
    let made = plan(&place.location(), &place.options()).await.unwrap();
    for step in &made.steps {
        place.execute(&format!("BEGIN;\n{}\nCOMMIT;", step.sql)).await;
    }
    let store = place.open().await.unwrap();
    store.enqueue(tasks("a", 1)).await.unwrap();
}

#[tokio::test]
async fn a_second_migration_does_nothing() {
    let place = Place::new();
    let first = migrate(&place.location(), &place.options()).await.unwrap();
    let empty = Place::new();
    let steps = plan(&empty.location(), &empty.options()).await.unwrap().steps.len();
    assert!(first.created && first.steps as usize == steps, "{first:?}");
    let store = place.open().await.unwrap();
    store.enqueue(tasks("a", 3)).await.unwrap();
    let second = migrate(&place.location(), &place.options()).await.unwrap();
    assert_eq!(second, Migrated { version: first.version, created: false, steps: 0 });
    assert_eq!(count(&*store).await, 3);
}

#[tokio::test]
async fn two_processes_that_migrate_at_once_take_turns() {
    let place = Place::new();
    let (location, options) = (place.location(), place.options());
    let (a, b, c) = tokio::join!(
        inside::migrate(&location, &options, V3),
        inside::migrate(&location, &options, V3),
        inside::migrate(&location, &options, V3),
    );
    let all = [a.unwrap(), b.unwrap(), c.unwrap()];
    assert!(all.iter().all(|migrated| migrated.version == 3), "{all:?}");
    assert_eq!(all.iter().map(|migrated| migrated.steps).sum::<u32>(), 3, "each step once: {all:?}");
    assert_eq!(all.iter().filter(|migrated| migrated.created).count(), 1);
}

#[tokio::test]
async fn a_previous_schema_is_brought_forward_with_its_rows() {
    let place = Place::new();
    inside::migrate(&place.location(), &place.options(), V1).await.unwrap();
    let old = inside::open(&place.location(), place.options(), V1).await.unwrap();
    old.enqueue(tasks("a", 2)).await.unwrap();
    let refused = inside::open(&place.location(), place.options(), V2).await.unwrap_err();
    assert!(matches!(refused, OpenError::OlderSchema { found: 1, needed: 2, .. }), "{refused}");
    assert!(refused.to_string().contains("windlass migrate"), "{refused}");
    let done = inside::migrate(&place.location(), &place.options(), V2).await.unwrap();
    assert_eq!(done, Migrated { version: 2, created: false, steps: 1 });
    let store = inside::open(&place.location(), place.options(), V2).await.unwrap();
    assert_eq!((count(&*store).await, store.info().await.unwrap().schema_version), (2, 2));
    place.number("SELECT count(colour) FROM {s}.task").await;
}

#[tokio::test]
async fn an_older_program_writes_only_inside_the_window() {
    let place = Place::new();
    let (location, options) = (place.location(), place.options());
    inside::migrate(&location, &options, V1).await.unwrap();
    let running = inside::open(&location, options.clone(), V1).await.unwrap();
    running.enqueue(tasks("a", 1)).await.unwrap();
    inside::migrate(&location, &options, V2).await.unwrap();
    running.enqueue(tasks("a", 1)).await.unwrap();
    let again = inside::open(&location, options.clone(), V1).await.unwrap();
    again.enqueue(tasks("b", 1)).await.unwrap();
    assert_eq!(count(&*again).await, 3);
    let kept = inside::migrate(&location, &options, V1).await.unwrap();
    assert_eq!((kept.version, kept.steps), (2, 0), "nothing is downgraded");
    inside::migrate(&location, &options, V3).await.unwrap();
    for migrate in [false, true] {
        let options = Options { migrate, ..options.clone() };
        let error = inside::open(&location, options, V2).await.unwrap_err();
        assert!(
            matches!(error, OpenError::NewerSchema { found: 3, oldest_writer: 3, known: 2, .. }),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.contains("version 3") && text.contains("up to 2"), "{text}");
    }
    assert_eq!(place.number(VERSION).await, 3);
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    const BAD: &[Migration] = &[FIRST, BROKEN];
    let place = Place::new();
    let (location, options) = (place.location(), place.options());
    inside::migrate(&location, &options, V1).await.unwrap();
    let error = inside::migrate(&location, &options, BAD).await.unwrap_err();
    assert!(error.to_string().contains("half"), "{error}");
    assert_eq!(place.number(VERSION).await, 1);
    assert_eq!(place.number("SELECT (to_regclass('{s}.half') IS NULL)::integer::bigint").await, 1);
    inside::open(&location, options, V1).await.unwrap();
}

#[tokio::test]
async fn a_foreign_schema_is_refused() {
    for theirs in [
        "CREATE TABLE {s}.recipe (name text)",
        "CREATE TABLE {s}.meta (title text)",
        "CREATE TABLE {s}.meta (name text PRIMARY KEY, value bigint NOT NULL)",
        "CREATE FUNCTION {s}.now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE TYPE {s}.mood AS ENUM ('good')",
    ] {
        let place = Place::new();
        place.execute(&format!("CREATE SCHEMA {{s}}; {theirs}")).await;
        let opened = place.open().await.unwrap_err();
        let migrated = migrate(&place.location(), &place.options()).await.unwrap_err();
        for error in [opened, migrated] {
            assert!(matches!(error, OpenError::ForeignSchema { .. }), "{theirs}: {error}");
            assert!(error.to_string().contains("--schema"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_empty_schema_is_used() {
    let place = Place::new();
    place.execute("CREATE SCHEMA {s}").await;
    assert!(matches!(place.open().await, Err(OpenError::NoSchema { .. })));
    let store = place.make().await;
    store.enqueue(tasks("a", 1)).await.unwrap();
}

#[tokio::test]
async fn a_schema_may_have_any_plain_name() {
    let long = format!("{:x<40}", support::schema_name());
    for name in ["windlass", "user", &long] {
        support::drop_schemas(support::url(), vec![name.to_owned()]);
        whole_life(&PostgresHarness::new().in_schema(name)).await;
    }
}

/// The database grants the role only a schema that an administrator made for it.
#[tokio::test]
async fn a_role_without_rights_works_in_a_schema_made_for_it() {
    let cluster = Cluster::start(&ClusterOptions::new().without_fsync()).unwrap();
    cluster
        .psql(
            "REVOKE ALL ON DATABASE windlass FROM public; REVOKE ALL ON SCHEMA public FROM public;
             CREATE ROLE modest LOGIN PASSWORD 'quiet'; GRANT CONNECT ON DATABASE windlass TO modest;
             CREATE SCHEMA owned AUTHORIZATION modest;
             CREATE SCHEMA lent; GRANT USAGE, CREATE ON SCHEMA lent TO modest;",
        )
        .unwrap();
    let url = cluster.url().replace("windlass@", "modest:quiet@");
    for schema in ["owned", "lent"] {
        whole_life(&PostgresHarness::at(&url).in_schema(schema)).await;
    }
    let mut place = Place::at(&url);
    "nowhere".clone_into(&mut place.schema);
    let error = migrate(&place.location(), &place.options()).await.unwrap_err();
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert!(!error.to_string().contains("quiet"), "{error}");
    cluster.psql("REVOKE ALL ON SCHEMA lent FROM modest").unwrap();
    "lent".clone_into(&mut place.schema);
    let error = place.open().await.unwrap_err();
    assert!(
        error.to_string().contains("permission denied"),
        "it is not refused as a foreign schema: {error}"
    );
}
