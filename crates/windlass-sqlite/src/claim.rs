//! Claim: ready tasks become leases of a worker.
//!
//! The figures of the lanes tell which lines have ready tasks, so a claim reads only those, and only their
//! heads. A claim takes the first tasks of a line, and one statement leases them.

pub(crate) mod suspect;

use std::{sync::Arc, time::Duration};

use rusqlite::{Row, Rows, params};
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Encoding, Error, Lane, LaneId, LeaseRef, Name, Payload, State, TaskId,
    TraceContext, WorkerId,
    affinity::hand_over,
    crash::{Group, Turn},
    source::Rest,
};

use crate::{
    claim::suspect::turn_of,
    connection::tx::{Step, Tx, disagree},
    gates::admit,
    leases::epoch,
    memory::{Held, Passed},
    sql,
};

/// Most lines that one claim compares; if a worker serves more, its claims rotate over them.
const LANES_PER_ROUND: usize = 64;
/// Most tasks that one demand may take.
const CLAIM_MAX: u32 = 10_000;

/// Runs a claim: all demands, or none if one of the workers may not claim.
pub(crate) fn claim(tx: &mut Tx<'_>, demands: &[Demand]) -> Step<ClaimAnswer> {
    for demand in demands {
        let is_known =
            tx.memory.worker(demand.worker).is_some_and(|worker| demand.claim_no >= worker.min_claim_no);
        if !is_known || !tx.leases.is_live(demand.worker, tx.mono) {
            return Err(Error::WorkerExpired.into());
        }
    }
    admit::admit_due(tx)?;
    suspect::stand_aside(tx, demands)?;
    let mut tasks = Vec::new();
    let mut rest = Rest::More;
    for demand in demands {
        rest = worst(rest, serve(tx, demand, &mut tasks)?);
    }
    exchange(tx, demands, &mut tasks)?;
    admit::give_turns(tx)?;
    if tasks.iter().any(|task| tx.memory.epoch.is_used_up_by(task.lease)) {
        epoch::begin(tx, 1)?;
    }
    Ok(ClaimAnswer { tasks, rest, next_due: tx.next_due()?, now: tx.now })
}

/// Hands each step to the worker of this claim that prefers its workflow.
fn exchange(tx: &mut Tx<'_>, demands: &[Demand], tasks: &mut [Claimed]) -> Step<()> {
    let may_get =
        |place: usize| demands.get(place).is_some_and(|demand| turn_of(tx, demand.worker) != Turn::Isolated);
    for change in hand_over(demands, tasks, may_get) {
        let (Some(task), Some(to)) = (tasks.get_mut(change.task), demands.get(change.to)) else { continue };
        let lease = LeaseRef { id: task.id, lease: task.lease };
        let held = tx.memory.take(task.worker, lease).ok_or_else(|| disagree("a lease"))?;
        tx.memory.hold(to.worker, task.id, Held { claim_no: to.claim_no, ..held });
        let changed =
            tx.sql(sql::CLAIM_HAND_OVER)?.execute((to.worker.0, to.claim_no as i64, task.id.raw()))?;
        if changed != 1 {
            return Err(disagree("a lease"));
        }
        (task.worker, task.claim_no) = (to.worker, to.claim_no);
    }
    Ok(())
}

/// The answer for several demands: the strongest reason why one of them got too little.
fn worst(a: Rest, b: Rest) -> Rest {
    match (a, b) {
        (Rest::Blocked, _) | (_, Rest::Blocked) => Rest::Blocked,
        (Rest::Nothing, _) | (_, Rest::Nothing) => Rest::Nothing,
        (Rest::More, Rest::More) => Rest::More,
    }
}

/// A task with its place in the line.
pub(crate) struct Taken {
    pub priority: i32,
    pub ready_seq: i64,
    pub task: Claimed,
}

fn serve(tx: &mut Tx<'_>, demand: &Demand, tasks: &mut Vec<Claimed>) -> Step<Rest> {
    let wanted = demand.n.min(CLAIM_MAX) as usize;
    if wanted == 0 {
        return Ok(Rest::More);
    }
    let (mut open, paused_ready) = open_lanes(tx, demand);
    let mut taken = Vec::with_capacity(wanted.min(1024));
    let is_isolated = turn_of(tx, demand.worker) == Turn::Isolated;
    // A suspect on its last chance must run alone on its worker, whether the worker holds it already or takes
    // it now.
    if is_isolated || suspect::take(tx, demand, wanted, &mut taken)? {
        let (others, _) = open_lanes(tx, demand);
        let rest = match taken.len() >= wanted {
            true => Rest::More,
            false if others.is_empty() && !paused_ready && !has_aside(tx, demand) => Rest::Nothing,
            false => Rest::Blocked,
        };
        tasks.extend(taken.into_iter().map(|taken| taken.task));
        return Ok(rest);
    }
    open.retain(|lane| plain_ready(tx, *lane) > 0);
    if open.len() > LANES_PER_ROUND
        && let Some(worker) = tx.memory.worker_mut(demand.worker)
    {
        // Each claim starts after the lanes of the last one, so that no line is skipped for ever.
        let start = worker.rotation % open.len();
        worker.rotation = worker.rotation.wrapping_add(LANES_PER_ROUND);
        open.rotate_left(start);
    }
    for lanes in open.chunks(LANES_PER_ROUND) {
        let room = wanted - taken.len();
        if room == 0 {
            break;
        }
        for (lane, quota) in quotas(tx, lanes, room)? {
            take_stretch(tx, demand, lane, quota, &mut taken)?;
        }
    }
    if open.len() > 1 {
        taken.sort_by_key(|taken| (std::cmp::Reverse(taken.priority), taken.ready_seq));
    }
    let rest = match taken.len() >= wanted {
        true => Rest::More,
        false if paused_ready || demand.lanes.iter().any(|lane| suspect::has_waiting(tx, *lane)) => {
            Rest::Blocked
        }
        false => Rest::Nothing,
    };
    tasks.extend(taken.into_iter().map(|taken| taken.task));
    Ok(rest)
}

/// Whether suspects are set aside in lanes of the demand.
fn has_aside(tx: &Tx<'_>, demand: &Demand) -> bool {
    demand.lanes.iter().any(|lane| tx.memory.lane(*lane).is_some_and(|entry| entry.aside > 0))
}

/// Lanes of the demand that are not paused and have ready tasks, and whether a paused one has some.
fn open_lanes(tx: &Tx<'_>, demand: &Demand) -> (Vec<LaneId>, bool) {
    let mut paused_ready = false;
    let mut open: Vec<LaneId> = Vec::new();
    for id in demand.lanes.iter() {
        match tx.memory.lane(*id) {
            Some(entry) if entry.depth.ready > 0 && entry.paused => paused_ready = true,
            Some(entry) if entry.depth.ready > 0 => open.push(*id),
            _ => {}
        }
    }
    open.sort_unstable();
    open.dedup();
    (open, paused_ready)
}

fn plain_ready(tx: &Tx<'_>, lane: LaneId) -> u64 {
    tx.memory.lane(lane).map_or(0, |entry| entry.depth.ready.saturating_sub(entry.suspects))
}

/// How many tasks to take from each lane, so that together they are the first `room` of all.
fn quotas(tx: &Tx<'_>, lanes: &[LaneId], room: usize) -> Step<Vec<(LaneId, usize)>> {
    if let [lane] = lanes {
        return Ok(vec![(*lane, room)]);
    }
    let mut heads = Vec::with_capacity(lanes.len());
    let share = (room / lanes.len() + 1).max(4);
    for lane in lanes {
        heads.push(Head::new(tx, *lane, share)?);
    }
    for _ in 0..room {
        // At most 64 heads: a scan is as fast as a heap, and simpler.
        let next = heads.iter_mut().filter(|head| head.first().is_some()).min_by_key(|head| head.first());
        match next {
            Some(head) => head.advance(tx)?,
            None => break,
        }
    }
    Ok(heads.into_iter().filter(|head| head.chosen > 0).map(|head| (head.lane, head.chosen)).collect())
}

/// The head of one line while lines are merged.
struct Head {
    lane: LaneId,
    keys: Vec<(std::cmp::Reverse<i32>, i64)>,
    /// How many tasks of the line were chosen; also the offset of the next.
    chosen: usize,
    /// Offset in the line of the first of `keys`.
    offset: usize,
    length: usize,
}

impl Head {
    fn new(tx: &Tx<'_>, lane: LaneId, share: usize) -> Step<Self> {
        let length = plain_ready(tx, lane) as usize;
        let mut head = Self { lane, keys: Vec::new(), chosen: 0, offset: 0, length };
        head.read(tx, share)?;
        Ok(head)
    }

    fn first(&self) -> Option<(std::cmp::Reverse<i32>, i64)> {
        self.keys.get(self.chosen - self.offset).copied()
    }

    fn advance(&mut self, tx: &Tx<'_>) -> Step<()> {
        self.chosen += 1;
        if self.first().is_none() && self.chosen < self.length {
            let more = self.chosen * 2;
            self.read(tx, more)?;
        }
        Ok(())
    }

    fn read(&mut self, tx: &Tx<'_>, n: usize) -> Step<()> {
        let mut statement = tx.sql(sql::CLAIM_KEYS)?;
        let rows = statement.query_map((self.lane.0, n as i64, self.chosen as i64), |row| {
            Ok((std::cmp::Reverse(row.get(0)?), row.get(1)?))
        })?;
        self.keys = rows.collect::<rusqlite::Result<_>>()?;
        self.offset = self.chosen;
        Ok(())
    }
}

/// Leases the first tasks of a line.
fn take_stretch(
    tx: &mut Tx<'_>,
    demand: &Demand,
    lane: LaneId,
    quota: usize,
    taken: &mut Vec<Taken>,
) -> Step<()> {
    let rows = {
        let mut statement = tx.sql(sql::CLAIM_READ)?;
        let mut rows = statement.query((lane.0, quota as i64))?;
        read_rows(tx, demand, lane, &mut rows)?
    };
    let mut update = tx.sql(sql::CLAIM_TAKE)?;
    for stretch in rows.chunk_by(|(a, _), (b, _)| a.priority == b.priority) {
        let ([(first, _), ..], [.., (last, _)]) = (stretch, stretch) else { continue };
        let changed = update.execute(params![
            demand.worker.0,
            demand.claim_no as i64,
            tx.now.as_ms(),
            lane.0,
            first.priority,
            first.ready_seq,
            last.ready_seq,
            tx.memory.epoch.0
        ])?;
        if changed != stretch.len() {
            return Err(disagree("a ready line"));
        }
    }
    tx.memory.count_move(lane, State::Ready, State::Running, rows.len() as i64);
    for (row, held) in rows {
        hold(tx, demand.worker, row.task.id, held);
        taken.push(row);
    }
    Ok(())
}

/// Records a lease; a task with a job counts as running from now on.
pub(crate) fn hold(tx: &mut Tx<'_>, worker: WorkerId, id: TaskId, mut held: Held) {
    if let Some(gate) = &mut held.gate
        && let Some(job) = &gate.job
    {
        gate.start_no = tx.memory.rooms.start(job, held.lane, id);
        // The delay of a job counts from its last start.
        if tx.memory.rooms.is_delayed(job) {
            tx.touched.job(job);
        }
    }
    tx.memory.hold(worker, id, held);
}

/// Reads ready rows as the leases that they are about to become.
pub(crate) fn read_rows(
    tx: &Tx<'_>,
    demand: &Demand,
    lane: LaneId,
    rows: &mut Rows<'_>,
) -> Step<Vec<(Taken, Held)>> {
    let lane = tx.memory.lane(lane).map(|entry| Arc::clone(&entry.lane)).ok_or_else(|| disagree("a lane"))?;
    let mut read = Vec::new();
    while let Some(row) = rows.next()? {
        read.push(read_row(tx, demand, &lane, row)?);
    }
    Ok(read)
}

fn read_row(tx: &Tx<'_>, demand: &Demand, lane: &Arc<Lane>, row: &Row<'_>) -> Step<(Taken, Held)> {
    let payload = row.get_ref(13)?.as_bytes().map_err(|_| disagree("a payload"))?.to_vec();
    let lease = tx.memory.epoch.next_lease(row.get(3)?);
    let attempt = row.get::<_, u32>(4)? + 1;
    let crashes = row.get(6)?;
    let name = |place, what| -> Step<Option<Name>> {
        let text = row.get_ref(place)?.as_str_or_null().map_err(|_| disagree(what))?;
        Ok(text.and_then(|text| Name::stored(what, text).ok()))
    };
    let (priority, job, workflow) = (row.get(1)?, name(9, "job")?, name(10, "workflow")?);
    let gate = match (&job, &workflow) {
        (None, None) => None,
        _ => Some(Box::new(Passed {
            job: job.clone(),
            workflow: workflow.clone(),
            step: row.get::<_, Option<i64>>(14)?.unwrap_or(0),
            priority,
            start_no: 0,
        })),
    };
    let max_attempts = row.get(5)?;
    let held = Held {
        lease,
        attempt,
        max_attempts,
        crashes,
        group: Group::from_stored(row.get::<_, Option<i64>>(16)?.unwrap_or(0)),
        claim_no: demand.claim_no,
        claimed_at: tx.now,
        lane: lane.id,
        payload_bytes: payload.len() as u32,
        keyed: row.get(11)?,
        cancel: None,
        gate,
    };
    let task = Claimed {
        id: TaskId::from_raw(row.get(0)?),
        lease,
        attempt,
        max_attempts,
        crashes,
        worker: demand.worker,
        claim_no: demand.claim_no,
        lane: Arc::clone(lane),
        priority,
        payload: Payload::from_stored(Encoding::from_code(row.get(12)?).unwrap_or(Encoding::Bytes), payload),
        job,
        workflow,
        timeout: row.get::<_, Option<i64>>(7)?.map(|ms| Duration::from_millis(ms as u64)),
        retry: row
            .get_ref(8)?
            .as_str_or_null()
            .ok()
            .flatten()
            .and_then(windlass_core::RetryPolicy::from_stored),
        trace: TraceContext::from_stored(row.get_ref(15)?.as_str_or_null().ok().flatten()),
        claimed_at: tx.now,
    };
    Ok((Taken { priority: task.priority, ready_seq: row.get(2)?, task }, held))
}
