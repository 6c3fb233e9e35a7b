//! Which worker gets which task of one claim for several workers: a step of a workflow goes to the worker
//! that asked for that workflow, if the worker has room. Pure.
//!
//! The order of the ready tasks alone decides what is claimed. This module only exchanges the claimed tasks
//! among the workers of the claim, so no task waits for a worker and none overtakes another.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{crash::is_suspect, id::WorkerId, name::Name, source::Demand, task::Claimed};

/// The workflows whose steps a worker prefers.
#[derive(Clone, Default)]
pub enum Prefers {
    /// It has no preference.
    #[default]
    Nothing,
    /// Steps of these workflows.
    Workflows(Arc<[Name]>),
    /// Steps of workflows whose last step it ran. Asked when the tasks of the claim are known, so that it
    /// holds for a step that became ready a moment before.
    LastRan(Arc<dyn LastRan>),
}

/// Knows which worker ran the last step of a workflow.
pub trait LastRan: Send + Sync {
    /// The worker that ran the last step of a workflow, if that is remembered.
    fn worker(&self, workflow: &Name) -> Option<WorkerId>;
}

impl Prefers {
    /// Whether it has no preference.
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Workflows(workflows) => workflows.is_empty(),
            Self::LastRan(_) => false,
        }
    }

    /// The workflows that it names.
    pub fn workflows(&self) -> &[Name] {
        match self {
            Self::Nothing | Self::LastRan(_) => &[],
            Self::Workflows(workflows) => workflows,
        }
    }

    fn has(&self, worker: WorkerId, workflow: &Name) -> bool {
        match self {
            Self::Nothing => false,
            Self::Workflows(workflows) => workflows.contains(workflow),
            Self::LastRan(last) => last.worker(workflow) == Some(worker),
        }
    }
}

impl fmt::Debug for Prefers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Workflows(workflows) => f.debug_tuple("Workflows").field(workflows).finish(),
            Self::LastRan(_) => f.write_str("LastRan"),
        }
    }
}

impl PartialEq for Prefers {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::LastRan(a), Self::LastRan(b)) => Arc::ptr_eq(a, b),
            (Self::LastRan(_), _) | (_, Self::LastRan(_)) => false,
            (a, b) => a.workflows() == b.workflows(),
        }
    }
}

impl Eq for Prefers {}

/// One task of a claim that goes to another worker of the same claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOver {
    /// The task's index among the tasks of the claim.
    pub task: usize,
    /// The index of that worker's demand.
    pub to: usize,
}

/// The exchanges that bring steps to the workers that asked for them. `may_get` says whether the worker of a
/// demand may get other tasks than it has: a worker that runs a suspect on its last chance may not. Suspects
/// of crashes are never exchanged.
pub fn hand_over(
    demands: &[Demand],
    tasks: &[Claimed],
    mut may_get: impl FnMut(usize) -> bool,
) -> Vec<HandOver> {
    let asking: Vec<usize> = (0..demands.len())
        .filter(|place| demands.get(*place).is_some_and(|one| !one.prefers.is_nothing()) && may_get(*place))
        .collect();
    if asking.is_empty() || tasks.is_empty() {
        return Vec::new();
    }
    let mut hands = Hands::new(demands, tasks);
    let wish = |task: &Claimed| {
        let workflow = task.workflow.as_ref().filter(|_| !is_suspect(task.crashes))?;
        let wishes = |place: &usize| {
            demands.get(*place).is_some_and(|one| one.prefers.has(one.worker, workflow) && serves(one, task))
        };
        asking.iter().copied().find(wishes)
    };
    let wished: Vec<Option<usize>> = tasks.iter().map(wish).collect();
    hands.may_leave = may_leave(&hands, &wished);
    for (place, wish) in wished.iter().enumerate() {
        if let Some(to) = *wish {
            hands.bring(place, to);
        }
    }
    hands.changes()
}

/// Tasks that each demand can give away. Those that another worker asked for are last, and `bring` takes from
/// the end.
fn may_leave(hands: &Hands<'_>, wished: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut leaving = vec![Vec::new(); hands.demands.len()];
    for is_wished in [false, true] {
        for (place, (task, wish)) in hands.tasks.iter().zip(wished).enumerate() {
            let Some(of) = hands.of(place) else { continue };
            if !is_suspect(task.crashes)
                && wish.is_some() == is_wished
                && *wish != Some(of)
                && let Some(leaving) = leaving.get_mut(of)
            {
                leaving.push(place);
            }
        }
    }
    leaving
}

fn serves(demand: &Demand, task: &Claimed) -> bool {
    demand.lanes.contains(&task.lane.id)
}

/// Which demand has which task during the exchange.
struct Hands<'a> {
    demands: &'a [Demand],
    tasks: &'a [Claimed],
    /// The index of each task's demand, before and now.
    before: Vec<Option<usize>>,
    now: Vec<Option<usize>>,
    /// How many more tasks each demand may get.
    room: Vec<usize>,
    /// Tasks that each demand can give away.
    may_leave: Vec<Vec<usize>>,
}

impl<'a> Hands<'a> {
    fn new(demands: &'a [Demand], tasks: &'a [Claimed]) -> Self {
        let of: HashMap<_, _> = demands.iter().enumerate().map(|(place, one)| (one.worker, place)).collect();
        let before: Vec<_> = tasks.iter().map(|task| of.get(&task.worker).copied()).collect();
        let mut room: Vec<_> = demands.iter().map(|demand| demand.n as usize).collect();
        for of in before.iter().flatten() {
            if let Some(room) = room.get_mut(*of) {
                *room = room.saturating_sub(1);
            }
        }
        Self { demands, tasks, now: before.clone(), before, room, may_leave: Vec::new() }
    }

    fn of(&self, task: usize) -> Option<usize> {
        self.now.get(task).copied().flatten()
    }

    /// Brings a task to a worker: into a free place, or in exchange for a task that the worker can give away.
    fn bring(&mut self, task: usize, to: usize) {
        let Some(from) = self.of(task).filter(|from| *from != to) else { return };
        if self.room.get(to).is_some_and(|room| *room > 0) {
            self.put(task, to);
            if let Some(room) = self.room.get_mut(to) {
                *room -= 1;
            }
            if let Some(room) = self.room.get_mut(from) {
                *room += 1;
            }
            return;
        }
        while let Some(other) = self.may_leave.get_mut(to).and_then(Vec::pop) {
            let fits =
                self.tasks.get(other).zip(self.demands.get(from)).is_some_and(|(task, to)| serves(to, task));
            if fits && self.of(other) == Some(to) {
                self.put(other, from);
                self.put(task, to);
                return;
            }
        }
    }

    fn put(&mut self, task: usize, to: usize) {
        if let Some(of) = self.now.get_mut(task) {
            *of = Some(to);
        }
    }

    fn changes(&self) -> Vec<HandOver> {
        let pairs = self.before.iter().zip(&self.now).enumerate();
        let changed = pairs.filter(|(_, (before, now))| before != now);
        changed.filter_map(|(task, (_, now))| Some(HandOver { task, to: (*now)? })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        id::{LaneId, TaskId},
        payload::Payload,
        task::Lane,
        time::Timestamp,
    };

    fn name(text: &str) -> Name {
        Name::new("name", text).unwrap()
    }

    fn demand(worker: i64, n: u32, prefers: &[&str]) -> Demand {
        let prefers = Prefers::Workflows(prefers.iter().map(|workflow| name(workflow)).collect());
        Demand { prefers, ..Demand::new(WorkerId(worker), 1, Arc::new([LaneId(1)]), n) }
    }

    fn step(id: i64, worker: i64, workflow: &str) -> Claimed {
        Claimed {
            id: TaskId::from_raw(id),
            lease: 1,
            attempt: 1,
            max_attempts: 1,
            crashes: 0,
            worker: WorkerId(worker),
            claim_no: 1,
            lane: Arc::new(Lane { id: LaneId(1), queue: name("q"), kind: name("k") }),
            priority: 0,
            payload: Payload::bytes(Vec::new()),
            job: None,
            workflow: (!workflow.is_empty()).then(|| name(workflow)),
            timeout: None,
            retry: None,
            trace: None,
            claimed_at: Timestamp::default(),
        }
    }

    /// The worker of each task after the exchanges.
    fn after(demands: &[Demand], tasks: &[Claimed]) -> Vec<i64> {
        let mut workers: Vec<_> = tasks.iter().map(|task| task.worker.0).collect();
        for change in hand_over(demands, tasks, |_| true) {
            workers[change.task] = demands[change.to].worker.0;
        }
        workers
    }

    #[test]
    fn steps_go_to_the_worker_that_asked_if_it_has_room() {
        let demands = [demand(1, 3, &["b"]), demand(2, 3, &["a", "c"])];
        let tasks = [step(1, 1, "a"), step(2, 1, "b"), step(3, 1, "c")];
        assert_eq!(after(&demands, &tasks), [2, 1, 2]);
    }

    #[test]
    fn a_full_worker_exchanges_a_task_it_did_not_ask_for() {
        let demands = [demand(1, 2, &["b"]), demand(2, 2, &["a"])];
        let tasks = [step(1, 1, "a"), step(2, 1, ""), step(3, 2, "b"), step(4, 2, "x")];
        assert_eq!(after(&demands, &tasks), [2, 1, 1, 2]);
        let all_wanted = [demand(1, 1, &[]), demand(2, 1, &["a", "b"])];
        assert_eq!(
            after(&all_wanted, &[step(1, 1, "a"), step(2, 2, "b")]),
            [1, 2],
            "no worker gets more than it asked for"
        );
    }

    #[test]
    fn suspects_and_closed_workers_are_left_alone() {
        let demands = [demand(1, 2, &[]), demand(2, 2, &["a"])];
        let tasks = [Claimed { crashes: 2, ..step(1, 1, "a") }];
        assert_eq!(after(&demands, &tasks), [1]);
        assert_eq!(hand_over(&demands, &[step(1, 1, "a")], |_| false), []);
        assert_eq!(hand_over(&demands, &[step(1, 1, "a")], |_| true), [HandOver { task: 0, to: 1 }]);
    }

    #[test]
    fn a_worker_gets_nothing_of_a_lane_that_it_does_not_serve() {
        let other = Demand { lanes: Arc::new([LaneId(9)]), ..demand(2, 2, &["a"]) };
        assert_eq!(after(&[demand(1, 2, &[]), other], &[step(1, 1, "a")]), [1]);
    }

    #[test]
    fn exchanges_keep_each_worker_within_its_demand() {
        for seed in 0..200_u64 {
            let dice =
                |n: u64, k: u64| (seed.wrapping_mul(6_364_136_223_846_793_005).rotate_left(k as u32) ^ k) % n;
            let letters = ["a", "b", "c", "d", "e"];
            let prefers = |k: u64| [letters[dice(5, k) as usize], letters[dice(5, k + 7) as usize]];
            let demands: Vec<_> =
                (0..3).map(|k| demand(k as i64, 2 + dice(3, k) as u32, &prefers(k))).collect();
            let mut tasks = Vec::new();
            for demand in &demands {
                for k in 0..=dice(u64::from(demand.n), demand.worker.0 as u64 + 11) {
                    tasks.push(step(tasks.len() as i64, demand.worker.0, letters[dice(5, k + 3) as usize]));
                }
            }
            let workers = after(&demands, &tasks);
            for demand in &demands {
                let got = workers.iter().filter(|worker| **worker == demand.worker.0).count();
                assert!(got <= demand.n as usize, "seed {seed}");
            }
        }
    }
}
