//! Claims like a worker: if the store says that there may be more, asks again.

use windlass_core::{ClaimAnswer, Demand, Result, Source, source::Rest};

/// Claims until the demands are met or the store has said why they are not. A store that gives some tasks may
/// leave it to the next claim to look for more.
pub(crate) async fn claim_out<S: Source + ?Sized>(store: &S, demands: &[Demand]) -> Result<ClaimAnswer> {
    let mut answer = store.claim(demands).await?;
    while answer.rest == Rest::More && !answer.tasks.is_empty() {
        let taken =
            |demand: &Demand| answer.tasks.iter().filter(|task| task.worker == demand.worker).count() as u32;
        let left: Vec<Demand> = demands
            .iter()
            .map(|demand| Demand { n: demand.n.saturating_sub(taken(demand)), ..demand.clone() })
            .filter(|demand| demand.n > 0)
            .collect();
        if left.is_empty() {
            break;
        }
        let more = store.claim(&left).await?;
        let is_over = more.tasks.is_empty();
        answer.tasks.extend(more.tasks);
        (answer.rest, answer.now) = (more.rest, more.now);
        answer.next_due = more.next_due.or(answer.next_due);
        if is_over {
            break;
        }
    }
    Ok(answer)
}
