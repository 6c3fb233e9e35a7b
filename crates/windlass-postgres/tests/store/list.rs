//! Pages of tasks over many rows.

use windlass_core::{Store, WorkerId, store::Filter};
use windlass_postgres::PostgresStore;

use crate::place::Place;

/// More tasks than one page looks at, all ready but the first, which a worker runs.
const MANY: &str = "
INSERT INTO {s}.lane (queue, kind) VALUES ('default', 'k');
INSERT INTO {s}.task (id, ready_seq, worker, claim_no, claimed_at, lane, priority, lease, attempt, max_attempts, crashes,
  state, encoding, payload)
SELECT n, CASE WHEN n > 1 THEN n END, CASE WHEN n = 1 THEN 7 END, 1, 1, l.id, 0, 1, 1, 10, 0,
  CASE WHEN n = 1 THEN 2 ELSE 1 END, 0, '1'
FROM generate_series(1, 45000) AS n, {s}.lane AS l;
";

/// The ids that a filter finds, and in how many pages.
async fn found(store: &PostgresStore, filter: &Filter) -> (Vec<i64>, usize) {
    let (mut ids, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.summaries(filter, after, 10).await.unwrap();
        ids.extend(page.tasks.iter().map(|task| task.id.raw()));
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            return (ids, pages);
        }
    }
}

#[tokio::test]
async fn filters_that_match_little_are_answered_in_bounded_steps() {
    let place = Place::new();
    let store = place.make().await;
    place.execute(MANY).await;
    let all = Filter::default;
    let key = || Some("none".to_owned());
    assert_eq!(found(&store, &Filter { key: key(), ..all() }).await, (vec![], 3));
    let queue = Some(windlass_conformance::cases::rig::name("default"));
    assert_eq!(found(&store, &Filter { key: key(), queue, ..all() }).await, (vec![], 3));
    assert_eq!(found(&store, &Filter { worker: Some(WorkerId(7)), ..all() }).await, (vec![1], 3));
    let running = Filter { state: Some(windlass_core::State::Running), ..all() };
    assert_eq!(found(&store, &Filter { worker: Some(WorkerId(7)), ..running }).await, (vec![1], 1));
    store.close().await.unwrap();
}
