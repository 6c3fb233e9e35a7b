//! Which roles may enqueue: a role that may use the schema can, and can do nothing else there.

use windlass_core::{Store as _, TaskId};
use windlass_postgres::{Location, Options, PostgresStore};
use windlass_scratch::{Cluster, ClusterOptions, psql};

/// A server of its own, because roles belong to the whole server.
#[tokio::test]
async fn a_role_that_may_use_the_schema_can_only_enqueue() {
    let cluster = Cluster::start(&ClusterOptions::new().without_fsync().password("p")).unwrap();
    let options = Options { migrate: true, ..Options::default() };
    let store = PostgresStore::open(&Location::parse(&cluster.url()).unwrap(), options).await.unwrap();
    cluster.psql("CREATE ROLE app LOGIN PASSWORD 'p'").unwrap();
    let url = cluster.url().replacen("windlass:p@", "app:p@", 1);
    let enqueue = "SELECT id FROM windlass.enqueue('a', key => 'k')";
    let refused = psql(&url, enqueue).unwrap_err().to_string();
    assert!(refused.contains("permission denied for schema windlass"), "{refused}");

    cluster.psql("GRANT USAGE ON SCHEMA windlass TO app").unwrap();
    let id: TaskId = psql(&url, enqueue).unwrap().parse().unwrap();
    assert!(store.task(id).await.unwrap().is_some());
    assert_eq!(psql(&url, enqueue).unwrap(), id.to_string(), "the key is found");
    let attempts = [
        "SELECT count(*) FROM windlass.task",
        "SELECT count(*) FROM windlass.key",
        "SELECT count(*) FROM windlass.token",
        "INSERT INTO windlass.arrival (task, is_ready, queue, kind) VALUES (1, true, 'q', 'k')",
        "UPDATE windlass.meta SET value = 1",
        "DELETE FROM windlass.task",
        "SELECT nextval('windlass.seq')",
        "CREATE TABLE windlass.mine (a integer)",
        "CREATE TEMP TABLE mine (task bigint, lane integer, is_ready boolean, queue text, kind text);
         CREATE TRIGGER steal AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION windlass.arrive()",
    ];
    for statement in attempts {
        let error = psql(&url, statement).unwrap_err().to_string();
        assert!(error.contains("permission denied"), "{statement}: {error}");
    }
    // The function does not find the tables that the caller put first in the search path.
    let shadow = "CREATE TEMP TABLE task (id bigint); CREATE TEMP TABLE lane (id bigint);
        SET search_path = pg_temp; SELECT id FROM windlass.enqueue('a')";
    let id: TaskId = psql(&url, shadow).unwrap().parse().unwrap();
    assert!(store.task(id).await.unwrap().is_some());
}

/// A server of its own, for the same reason (S10).
#[tokio::test]
async fn a_plain_role_makes_the_schema_and_does_everything() {
    let cluster = Cluster::start(&ClusterOptions::new().without_fsync().password("p")).unwrap();
    cluster.psql("CREATE ROLE plain LOGIN PASSWORD 'p' NOSUPERUSER NOCREATEDB NOCREATEROLE").unwrap();
    cluster
        .psql(
            "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO plain', current_database()); END $$",
        )
        .unwrap();
    let url = cluster.url().replacen("windlass:p@", "plain:p@", 1);
    assert_eq!(psql(&url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").unwrap(), "f");
    let options = Options { migrate: true, ..Options::default() };
    let store = PostgresStore::open(&Location::parse(&url).unwrap(), options).await.unwrap();
    let id = psql(&url, "SELECT id FROM windlass.enqueue('a')").unwrap().parse().unwrap();
    assert!(store.task(id).await.unwrap().is_some());
    assert_eq!(store.tokens().list().await, Ok(vec![]));
    assert_eq!(store.audit().await, Ok(vec![]));
    store.retain(&windlass_core::store::Retention::default()).await.unwrap();
    store.close().await.unwrap();
}
