//! RECOVERY-BOUND and DONE-DURABLE: `kill -9` of one worker of several.

use e2e::postgres::{Place, judge, until};

use crate::{arrivals, enqueue, target, until_open};

const WORKERS: usize = 3;
const SLOTS: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_killed_worker_run_once_more_on_the_others() {
    let place = Place::shared().unwrap().with("WINDLASS_CLAIM_BATCH_SIZE", "4");
    let target = target().await;
    target.hold();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(place.worker(SLOTS).await.unwrap());
    }
    // One for each slot of all workers, so that each worker runs some of them.
    let ids = enqueue(&place, &target, WORKERS * SLOTS as usize).await;
    until_open(&target, WORKERS as u32 * SLOTS).await;

    let mut victim = workers.remove(0);
    let lost = place.held_by(victim.pid()).unwrap();
    assert_eq!(lost.len(), SLOTS as usize, "every slot was taken");
    victim.kill().unwrap();
    target.release();
    until("they come again", || Ok(arrivals(&target, &lost).iter().all(|times| *times == 2))).await.unwrap();

    let judged = judge(&place, &ids, &target).await.unwrap();
    assert_eq!(judged.crashes, lost.len() as u64, "each of them counts one crash");
    assert_eq!(judged.claimed_again(), lost.len(), "no other task ran again");
    assert!(arrivals(&target, &lost).iter().all(|times| *times == 2), "once more, not more often");
    assert_eq!(place.done_by(victim.pid()).unwrap(), 0, "the dead have settled nothing");
}
