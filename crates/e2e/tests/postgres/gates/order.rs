//! Steps in order over a fleet, and workflows in parallel.

use e2e::postgres::{Place, attempts, check_workflow};

use super::{enqueue, fleet, judge_gated, step};
use crate::target;

#[tokio::test(flavor = "multi_thread")]
async fn ten_steps_run_in_order_over_three_workers() {
    let place = Place::shared().unwrap().patient();
    let target = target().await;
    let _workers = fleet(&place, 3, 4).await;
    let mut steps = Vec::new();
    // One call each, while the first of them run.
    for _ in 0..10 {
        steps.extend(enqueue(&place, vec![step(&target, "w")]).await);
    }
    judge_gated(&place, &steps, &target).await;
    target.book().visits.check_workflow("w", &steps).unwrap();
    check_workflow(&attempts(&place).unwrap(), "w", &steps).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_workflows_run_side_by_side_each_in_its_order() {
    const WORKFLOWS: usize = 100;
    const STEPS: usize = 5;
    let place = Place::shared().unwrap().patient();
    let target = target().await;
    let _workers = fleet(&place, 3, 8).await;
    let name = |number: usize| format!("w{number}");
    // Step by step over all of them, so that neighbours in the line are of different workflows.
    let batch = (0..WORKFLOWS * STEPS).map(|place| step(&target, &name(place % WORKFLOWS)));
    let ids = enqueue(&place, batch.collect()).await;
    let judged = judge_gated(&place, &ids, &target).await;
    assert_eq!(judged.claimed_again(), 0);

    let attempts = attempts(&place).unwrap();
    let book = target.book();
    for number in 0..WORKFLOWS {
        let steps: Vec<String> = ids.iter().skip(number).step_by(WORKFLOWS).cloned().collect();
        book.visits.check_workflow(&name(number), &steps).unwrap();
        check_workflow(&attempts, &name(number), &steps).unwrap();
    }
    let at_once = book.visits.most_open(|visit| visit.workflow.is_some());
    drop(book);
    println!("{at_once} steps were open at once");
    assert!(at_once > 1, "workflows ran side by side");
}
