//! The lanes that this worker serves, and the handler of each.

use std::{collections::HashMap, sync::Arc};

use windlass_core::{LaneId, Result, Source};

use super::shared::Shared;
use crate::{
    handler::{RawHandler, registry::Registry},
    telemetry::KindMeter,
};

/// Most lanes in one claim; with more, claims rotate over them.
const LANES_PER_CLAIM: usize = 64;

/// What each task of a lane needs, looked up once.
struct Served {
    handler: Arc<dyn RawHandler>,
    meter: Option<Arc<KindMeter>>,
}

pub(crate) struct Lanes {
    handlers: HashMap<LaneId, Served>,
    chunks: Vec<Arc<[LaneId]>>,
    next_chunk: usize,
    seen_in_round: usize,
    stale: bool,
    kinds: Vec<windlass_core::Name>,
}

impl Lanes {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            handlers: HashMap::new(),
            chunks: Vec::new(),
            next_chunk: 0,
            seen_in_round: 0,
            stale: true,
            kinds: registry.kinds(),
        }
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    pub(crate) fn mark_stale(&mut self) {
        self.stale = true;
        self.start_round();
    }

    pub(crate) async fn refresh(&mut self, source: &dyn Source, shared: &Shared) -> Result<()> {
        let lanes = source.lanes(&self.kinds, &shared.config.queues).await?;
        self.stale = false;
        if lanes.len() == self.handlers.len() && lanes.iter().all(|lane| self.handlers.contains_key(&lane.id))
        {
            return Ok(());
        }
        self.handlers = lanes
            .iter()
            .filter_map(|lane| {
                let handler = shared.registry.get(lane.kind.as_str())?.clone();
                let meter = shared.meters.as_ref().and_then(|meters| meters.kind(&lane.kind));
                Some((lane.id, Served { handler, meter }))
            })
            .collect();
        let mut ids: Vec<_> = self.handlers.keys().copied().collect();
        ids.sort_unstable();
        self.chunks = ids.chunks(LANES_PER_CLAIM).map(Arc::from).collect();
        Ok(())
    }

    /// The lanes of the next claim, if there are any.
    pub(crate) fn for_claim(&mut self) -> Option<Arc<[LaneId]>> {
        let turn = self.next_chunk.checked_rem(self.chunks.len())?;
        self.next_chunk = turn + 1;
        self.seen_in_round += 1;
        self.chunks.get(turn).cloned()
    }

    /// Starts a new round, because a task was found or time has passed.
    pub(crate) fn start_round(&mut self) {
        self.seen_in_round = 0;
    }

    /// Whether some lanes were not claimed from in this round.
    pub(crate) fn has_unseen_chunk(&self) -> bool {
        self.chunks.len() > 1 && self.seen_in_round < self.chunks.len()
    }

    pub(crate) fn handler(&self, lane: LaneId) -> Option<&Arc<dyn RawHandler>> {
        self.handlers.get(&lane).map(|served| &served.handler)
    }

    /// The counters of a lane's tasks.
    pub(crate) fn meter(&self, lane: LaneId) -> Option<Arc<KindMeter>> {
        self.handlers.get(&lane)?.meter.clone()
    }
}
