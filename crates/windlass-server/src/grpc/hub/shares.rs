//! How many tasks each worker may get in one round of claims: pure functions.

use std::{collections::BTreeMap, sync::Arc};

use windlass_core::LaneId;

/// Most tasks for a worker in its first claim; doubled while the worker gets all that it asked for. So a few
/// tasks are spread over the waiting workers, and many tasks are sent in large claims.
pub(in crate::grpc) const BATCH_MIN: u32 = 8;
/// Most tasks for one worker in one claim.
pub(in crate::grpc) const BATCH_MAX: u32 = 256;

/// What one worker can take.
#[derive(Debug, Clone)]
pub(in crate::grpc) struct Want {
    /// Its stream.
    pub(in crate::grpc) stream: u64,
    /// Lanes that it handles.
    pub(in crate::grpc) lanes: Arc<[LaneId]>,
    /// Tasks that the worker could start now.
    pub(in crate::grpc) demand: u32,
    /// Most tasks for the worker in one claim.
    pub(in crate::grpc) batch: u32,
}

/// One claim: streams and how many tasks each may get, in the order in which they are served.
pub(in crate::grpc) type Claim = (Arc<[LaneId]>, Vec<(u64, u32)>);

/// The claims of a round: one per class of workers with equal lanes. Each turn starts with another worker of
/// the class.
pub(in crate::grpc) fn claims(wants: &[Want], turn: u64) -> Vec<Claim> {
    let mut classes: BTreeMap<&[LaneId], Vec<&Want>> = BTreeMap::new();
    for want in wants.iter().filter(|want| want.demand > 0 && !want.lanes.is_empty()) {
        classes.entry(&want.lanes).or_default().push(want);
    }
    let mut claims = Vec::new();
    for members in classes.into_values() {
        let Some(first) = members.first() else { continue };
        let start = (turn % members.len().max(1) as u64) as usize;
        let turns = members.iter().cycle().skip(start).take(members.len());
        let shares = turns.map(|want| (want.stream, want.demand.min(want.batch).clamp(1, BATCH_MAX)));
        claims.push((Arc::clone(&first.lanes), shares.collect()));
    }
    claims
}

/// The size of a worker's next claim, after it asked for `asked` tasks and got `got`.
pub(in crate::grpc) fn next_batch(batch: u32, asked: u32, got: u32) -> u32 {
    if got >= asked { batch.saturating_mul(2).min(BATCH_MAX) } else { BATCH_MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(stream: u64, lane: i64, demand: u32) -> Want {
        Want { stream, lanes: [LaneId(lane)].into(), demand, batch: BATCH_MIN }
    }

    #[test]
    fn workers_with_equal_lanes_share_a_claim_and_take_turns() {
        let wants = [want(1, 7, 100), want(2, 7, 3), want(3, 9, 1), want(4, 7, 0)];
        let made = claims(&wants, 0);
        let shares: Vec<_> = made.iter().map(|(_, shares)| shares.clone()).collect();
        assert_eq!(shares, [vec![(1, 8), (2, 3)], vec![(3, 1)]]);
        assert_eq!(claims(&wants, 1)[0].1, [(2, 3), (1, 8)]);
    }

    #[test]
    fn claims_grow_while_they_are_full_and_start_small_again() {
        assert_eq!(next_batch(8, 8, 8), 16);
        assert_eq!(next_batch(BATCH_MAX, 9, 9), BATCH_MAX);
        assert_eq!(next_batch(128, 128, 127), BATCH_MIN);
    }
}
