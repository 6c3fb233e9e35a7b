//! ENQ-DURABLE and DONE-DURABLE under `kill -9`.

use e2e::{kill::kill_rounds, rng::Rng};

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_under_load_loses_no_task_and_repeats_no_finished_one() {
    let rounds = if crate::is_long() { 20 } else { 3 };
    let folder = tempfile::tempdir().unwrap();
    let report = kill_rounds(folder.path(), rounds, Rng::seed()).await.unwrap();
    println!("{report}");
    assert!(report.is_clean(), "{report}\n{:#?}\n{:#?}", report.ended_badly, report.ran_after_done);
    assert!(report.done_before_a_kill > 0, "nothing was done before a kill, so nothing was shown: {report}");
    assert!(report.ran_twice > 0, "no kill hit a running task, so nothing was shown: {report}");
}
