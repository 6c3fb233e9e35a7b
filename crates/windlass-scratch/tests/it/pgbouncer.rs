//! A private PgBouncer.

use windlass_scratch::{Cluster, ClusterOptions, Error, PgBouncer, PoolMode, PoolOptions, psql};

use crate::processes::with_argument;

fn cluster() -> Cluster {
    Cluster::start(&ClusterOptions::new().without_fsync()).unwrap()
}

#[test]
fn pooler_shows_the_pool_that_a_statement_went_through() {
    let cluster = cluster();
    let pooler = PgBouncer::start(&cluster, &PoolOptions::new(PoolMode::Transaction).pool_size(3)).unwrap();
    let is_there = |pools: &str| pools.lines().any(|line| line.starts_with("windlass|windlass|"));
    assert!(!is_there(&pooler.admin("SHOW POOLS").unwrap()));
    assert_eq!(psql(&pooler.url(), "SELECT current_user").unwrap(), "windlass");
    let pools = pooler.admin("SHOW POOLS").unwrap();
    assert!(is_there(&pools), "{pools}");
    let line = pools.lines().find(|line| line.starts_with("windlass|")).unwrap();
    assert!(line.split('|').any(|column| column == "transaction"), "{pools}");
    let size = pooler.admin("SHOW DATABASES").unwrap();
    assert!(
        size.lines().any(|line| line.starts_with("windlass|127.0.0.1|") && line.contains("|3|")),
        "{size}"
    );
}

#[test]
fn pooler_of_a_cluster_with_a_password_asks_for_it_too() {
    let options = ClusterOptions::new().without_fsync().password("s3cret");
    let cluster = Cluster::start(&options).unwrap();
    let pooler = PgBouncer::start(&cluster, &PoolOptions::new(PoolMode::Session)).unwrap();
    assert_eq!(psql(&pooler.url(), "SELECT 1").unwrap(), "1");
    assert!(matches!(psql(&pooler.url().replace(":s3cret", ""), "SELECT 1"), Err(Error::Psql(_))));
}

#[test]
fn console_is_closed_to_the_network() {
    let cluster = cluster();
    let pooler = PgBouncer::start(&cluster, &PoolOptions::new(PoolMode::Transaction)).unwrap();
    let console = format!("postgres://postgres@127.0.0.1:{}/pgbouncer", pooler.port());
    assert!(matches!(psql(&console, "SHOW POOLS"), Err(Error::Psql(_))));
}

#[test]
fn a_pooler_restarts_and_is_removed_when_dropped() {
    let cluster = cluster();
    let pooler = PgBouncer::start(&cluster, &PoolOptions::new(PoolMode::Transaction)).unwrap();
    let folder = pooler.folder().to_owned();
    pooler.stop().unwrap();
    assert!(matches!(psql(&pooler.url(), "SELECT 1"), Err(Error::Psql(_))));
    pooler.start_again().unwrap();
    assert_eq!(psql(&pooler.url(), "SELECT 1").unwrap(), "1");
    drop(pooler);
    assert!(!folder.exists());
    assert_eq!(with_argument(folder.to_str().unwrap()), Vec::<u32>::new());
}
