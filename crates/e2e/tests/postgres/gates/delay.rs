//! A job with a delay between two starts.

use std::time::Duration;

use e2e::postgres::{Place, attempts};

use super::{assert_at_rest, enqueue, fleet, json_of, judge_gated, of_job};
use crate::target;

const DELAY_MS: i64 = 200;
/// By how much requests may be closer than the delay: the time from a claim to the target varies.
const CLOSEST: Duration = Duration::from_millis(180);
const TASKS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn the_delay_of_a_job_holds_over_the_whole_fleet() {
    let place = Place::shared().unwrap().patient();
    let target = target().await;
    let _workers = fleet(&place, 2, 4).await;
    json_of(&place, &["jobs", "set", "site", "--delay", "200ms"]);
    let ids = enqueue(&place, (0..TASKS).map(|_| of_job(&target, "site")).collect()).await;
    judge_gated(&place, &ids, &target).await;

    let starts: Vec<i64> = attempts(&place).unwrap().iter().map(|attempt| attempt.started_ms).collect();
    assert_eq!(starts.len(), TASKS);
    let apart: Vec<i64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(apart.iter().all(|ms| *ms >= DELAY_MS), "claims are so many ms apart: {apart:?}");
    let came: Vec<_> = target.book().visits.iter().map(|visit| visit.came).collect();
    let apart: Vec<_> = came.windows(2).map(|pair| pair[1] - pair[0]).collect();
    println!("requests came at least {:?} apart", apart.iter().min());
    assert!(apart.iter().all(|time| *time >= CLOSEST), "requests came so far apart: {apart:?}");
    assert_at_rest(&place, "site");
}
