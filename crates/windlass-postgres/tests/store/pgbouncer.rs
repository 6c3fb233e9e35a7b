//! A store behind PgBouncer in transaction mode: settings and locks of a session do not last there.

use std::{sync::Arc, time::Duration};

use windlass_conformance::{
    CASES,
    cases::rig::{Rig, name, task},
    run,
};
use windlass_core::{Demand, Hint, Source, Store};
use windlass_postgres::{Notify, Options, PostgresStore};
use windlass_scratch::{Cluster, ClusterOptions, PgBouncer, PoolMode, PoolOptions};

use crate::{life::whole_life, support::PostgresHarness, wait::until};

/// Files of the suite whose cases run here too: those with transactions, keys, locks and races.
const FILES: [&str; 9] =
    ["keys", "claim", "fence", "receipts", "suspects", "cancel", "unclaim", "reconcile", "lost"];

struct Pooled {
    cluster: Cluster,
    pooler: PgBouncer,
}

impl Pooled {
    fn start() -> Self {
        let cluster = Cluster::start(&ClusterOptions::new().without_fsync()).unwrap();
        let options = PoolOptions::new(PoolMode::Transaction).pool_size(8);
        let pooler = PgBouncer::start(&cluster, &options).unwrap();
        Self { cluster, pooler }
    }

    fn harness(&self, notify: &Notify) -> PostgresHarness {
        let notify = notify.clone();
        PostgresHarness::at(&self.cluster.url()).through(&self.pooler.url()).with(move |options| Options {
            pooled: true,
            notify: notify.clone(),
            ..options
        })
    }

    /// Clients and servers of the pool, as its console shows them.
    fn connections(&self) -> (u32, u32) {
        let pools = self.pooler.admin("SHOW POOLS").unwrap();
        let line = pools.lines().find(|line| line.starts_with("windlass|windlass|")).unwrap_or_default();
        let number =
            |place: usize| line.split('|').nth(place).and_then(|text| text.parse().ok()).unwrap_or(0);
        let header = self.pooler.admin("SHOW VERSION").unwrap();
        assert!(header.contains("PgBouncer"), "{header}");
        // Database, user, active clients, waiting clients; the columns after them differ between versions.
        (number(2) + number(3), line.split('|').skip(4).filter_map(|text| text.parse::<u32>().ok()).sum())
    }

    /// Transactions that went through the pool.
    fn transactions(&self) -> u64 {
        let stats = self.pooler.admin("SHOW STATS_TOTALS").unwrap();
        let line = stats.lines().find(|line| line.starts_with("windlass|")).unwrap_or_default();
        line.split('|').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn assert_nothing_was_missing(&self) {
        let log = self.cluster.log();
        let missing: Vec<&str> = log.lines().filter(|line| line.contains("prepared statement")).collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }
}

#[tokio::test]
async fn tasks_live_their_whole_life_behind_a_pooler() {
    let pooled = Pooled::start();
    let direct = Notify::At(pooled.cluster.url());
    for notify in [Notify::Off, Notify::On, direct] {
        let before = pooled.transactions();
        whole_life(&pooled.harness(&notify)).await;
        assert!(pooled.transactions() > before + 50, "{notify:?}: it did not go through the pooler");
    }
    pooled.assert_nothing_was_missing();
}

#[test]
fn the_rules_of_every_store_hold_behind_a_pooler() {
    let pooled = Pooled::start();
    let chosen =
        CASES.iter().filter(|case| FILES.iter().any(|file| case.name.starts_with(&format!("{file}::"))));
    for case in chosen {
        run(case.name, &pooled.harness(&Notify::Off));
    }
    pooled.assert_nothing_was_missing();
}

#[tokio::test]
async fn two_stores_behind_a_pooler_share_the_work() {
    let pooled = Pooled::start();
    let harness = pooled.harness(&Notify::Off);
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 40).await;
    let (mut one, mut two) = (rig.worker().await, rig.worker().await);
    let (first, second) = tokio::join!(one.claim(20), two.claim(20));
    let mut ids: Vec<_> = first.iter().chain(&second).map(|task| task.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), first.len() + second.len(), "no task twice");
    let (clients, servers) = pooled.connections();
    assert!(clients >= 3 && servers >= 1, "{clients} clients, {servers} server connections");
    let direct = "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^(windlass|h[0-9a-f]+) '";
    assert!(harness.number(direct).await <= 8, "the pooler's connections, not those of two stores");
    assert_eq!(one.store.retire(one.id).await.unwrap(), first.len() as u64);
    assert_eq!(two.store.retire(two.id).await.unwrap(), second.len() as u64);
    pooled.assert_nothing_was_missing();
}

#[tokio::test]
async fn a_store_behind_a_pooler_listens_on_a_direct_address() {
    let pooled = Pooled::start();
    let harness = pooled.harness(&Notify::At(pooled.cluster.url()));
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let idle: Arc<PostgresStore> = harness.open_again(|_| {}).await;
    until("it listens", async || idle.hears_of_new_tasks()).await;
    let mut worker = rig.worker().await;
    worker.store = Arc::clone(&idle) as Arc<dyn Store>;
    assert_eq!(worker.claim(5).await.len(), 1, "and the claim with too few tasks armed the doorbell");
    let mut hints = idle.hints();
    rig.add(task("a")).await;
    let hint = tokio::time::timeout(Duration::from_secs(20), hints.next()).await.unwrap();
    assert_eq!(hint, Hint::Ready);
    let lanes = idle.lanes(&[name("a")], &[]).await.unwrap().iter().map(|lane| lane.id).collect();
    let demand = Demand::new(worker.id, 9, lanes, 5);
    assert_eq!(idle.claim(&[demand]).await.unwrap().tasks.len(), 1);
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '% listen'";
    assert_eq!(harness.number(listening).await, 2, "one for each store");
}

/// Without a direct address the store cannot listen, and says so.
#[tokio::test]
async fn a_pooled_store_without_a_direct_address_does_not_listen() {
    let pooled = Pooled::start();
    let harness = pooled.harness(&Notify::On);
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    assert!(!rig.store.hears_of_new_tasks());
    assert_eq!(
        pooled
            .cluster
            .psql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '% listen'")
            .unwrap(),
        "0"
    );
}
