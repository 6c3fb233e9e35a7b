//! The property: after any sequence of calls, a store answers and looks like the model.
//!
//! [`ops`] makes random steps that fit the state of the model, [`mod@reference`] applies them to the model,
//! [`book`] turns a step into a call with the ids of one side, [`mod@call`] makes it, [`seen`] makes the
//! answers of both sides comparable, [`invariants`] checks the model alone, and this file runs a store beside
//! the model.

pub mod book;
pub mod call;
pub mod invariants;
pub mod ops;
pub mod reference;
pub mod seen;

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use windlass_core::{Event, State, TaskId, state};

use self::{book::Book, call::Answer, ops::Op, reference::Reference, seen::Snapshot};
use crate::harness::Harness;

/// Shrinking stops after this long: a long failing example now is worth more than a short one much later.
const SHRINK_MAX: Duration = Duration::from_mins(1);

/// How many and how long the runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Independent runs.
    pub cases: u32,
    /// Steps of each run.
    pub steps: usize,
    /// How long to look for a shorter example of a difference.
    pub shrink: Duration,
}

impl Default for Effort {
    /// 256 cases of 100 steps; `WINDLASS_PROPERTY_CASES` sets another number of cases.
    fn default() -> Self {
        let cases = std::env::var("WINDLASS_PROPERTY_CASES").ok().and_then(|text| text.parse().ok());
        Self { cases: cases.unwrap_or(256), steps: 100, shrink: SHRINK_MAX }
    }
}

/// How often each move of the state table was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(State, Event), u64>);

impl Coverage {
    fn add(&mut self, moves: &BTreeMap<(State, Event), u64>) {
        for (step, n) in moves {
            *self.0.entry(*step).or_default() += n;
        }
    }

    /// How often this move was made.
    pub fn count(&self, from: State, event: Event) -> u64 {
        self.0.get(&(from, event)).copied().unwrap_or(0)
    }

    /// Moves that were never made.
    pub fn missing(&self) -> Vec<(State, Event)> {
        state::TRANSITIONS
            .iter()
            .map(|(from, event, _)| (*from, *event))
            .filter(|(from, event)| self.count(*from, *event) == 0)
            .collect()
    }
}

/// The seed: fixed, unless an environment variable sets it or a long run draws a new one.
fn seed() -> u64 {
    let set = std::env::var("WINDLASS_PROPERTY_SEED").ok().and_then(|seed| seed.parse().ok());
    set.unwrap_or_else(|| match std::env::var_os("WINDLASS_LONG") {
        Some(_) => std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
        None => 20_261_115,
    })
}

/// Runs stores beside the model. The error is the shortest sequence found that shows a difference, or the
/// moves that were never made.
pub fn check(make: impl Fn() -> Box<dyn Harness>, effort: Effort) -> Result<Coverage, String> {
    let coverage = explore(make, effort)?;
    match coverage.missing() {
        missing if missing.is_empty() => Ok(coverage),
        missing => Err(format!("moves that were never made: {missing:?}")),
    }
}

/// The same for an effort that is too small to make every move: the caller checks the coverage.
pub fn explore(make: impl Fn() -> Box<dyn Harness>, effort: Effort) -> Result<Coverage, String> {
    let seed = seed();
    let config = Config {
        cases: effort.cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: effort.shrink.as_millis() as u32,
        max_shrink_iters: if effort.shrink.is_zero() { 1 } else { u32::MAX },
        ..Config::default()
    };
    let coverage = Mutex::new(Coverage::default());
    let strategy = Reference::sequential_strategy(effort.steps..=effort.steps);
    let verdict = TestRunner::new(config).run(&strategy, |(start, ops, seen)| {
        let applied = |_: &Op| {
            if let Some(counter) = &seen {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        };
        let end = run_one(&*make(), start, ops, applied).map_err(TestCaseError::fail)?;
        coverage.lock().unwrap_or_else(PoisonError::into_inner).add(end.model().moves());
        Ok(())
    });
    verdict.map_err(|error| format!("{error}\n(WINDLASS_PROPERTY_SEED={seed})"))?;
    Ok(coverage.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs random work on stores and stops each in the middle, as a killed process does; `look` then gets the
/// harness.
///
/// # Errors
/// The error of `look` for the shortest sequence found that it did not accept.
pub fn interrupt<H: Harness>(
    make: impl Fn() -> H,
    effort: Effort,
    look: impl Fn(&H) -> Result<(), String>,
) -> Result<(), String> {
    let seed = seed();
    let config = Config {
        cases: effort.cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: effort.shrink.as_millis() as u32,
        ..Config::default()
    };
    let strategy = Reference::sequential_strategy(effort.steps..=effort.steps);
    let verdict = TestRunner::new(config).run(&strategy, |(_, ops, seen)| {
        let harness = make();
        let applied = || {
            if let Some(counter) = &seen {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        };
        work(&harness, ops, applied).and_then(|()| look(&harness)).map_err(TestCaseError::fail)
    });
    verdict.map_err(|error| format!("{error}\n(WINDLASS_PROPERTY_SEED={seed})"))
}

/// Makes calls and ignores their answers.
fn work(harness: &dyn Harness, ops: Vec<Op>, applied: impl Fn()) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let store = harness.open(reference::rules()).await;
        let mut book = Book::new(harness.now().await);
        for op in ops {
            applied();
            if let Op::Advance { seconds } = op {
                harness.advance(Duration::from_secs(seconds)).await;
            }
            let answer = book.call(&op, harness.now().await).on_store(&*store).await;
            book.learn(&op, &answer, store.lanes(&ops::kinds(), &[]).await.unwrap_or_default());
        }
        store.close().await.map_err(|error| error.to_string())
    })
}

fn run_one(
    harness: &dyn Harness,
    mut reference: Reference,
    ops: Vec<Op>,
    mut applied: impl FnMut(&Op),
) -> Result<Reference, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let store = harness.open(reference::rules()).await;
        let mut book = Book::new(harness.now().await);
        let exact = harness.clock_is_manual();
        for op in ops {
            applied(&op);
            // The steps were made for a model that followed no store, so one of them may not fit here.
            if !Reference::preconditions(&reference, &op) {
                continue;
            }
            if let Op::Advance { seconds } = op {
                harness.advance(Duration::from_secs(seconds)).await;
            }
            let call = book.call(&op, harness.now().await);
            let answer = call.on_store(&*store).await;
            harness.settle_down(&*store).await;
            let taken = taken(&answer, &book, reference.book());
            reference = reference.follow(&op, &taken);
            book.learn(&op, &answer, store.lanes(&ops::kinds(), &[]).await.unwrap_or_default());
            let mut answer = seen::answer(answer, &book, exact);
            let mut expected = seen::answer(reference.answer().clone(), reference.book(), exact);
            // A job that holds nothing back may or may not ask for a turn.
            if reference.model().has_idle_delay() {
                (answer, expected) = (seen::without_next_due(answer), seen::without_next_due(expected));
            }
            if answer != expected {
                return Err(format!("{op:?} answered\n  {answer:?}\nthe model says\n  {expected:?}"));
            }
            let look = Snapshot::of_store(&*store, &book, exact).await.map_err(|error| error.to_string())?;
            if let Some(difference) = reference.snapshot(exact).difference(&look) {
                return Err(format!("after {op:?}\n{difference}"));
            }
            if let Some(broken) = invariants::broken(reference.model()) {
                return Err(format!("after {op:?} the model itself: {broken}"));
            }
            audit(&*store).await.map_err(|found| format!("after {op:?} {found}"))?;
        }
        rest(harness, &*store).await?;
        store.close().await.map_err(|error| error.to_string())?;
        Ok(reference)
    })
}

/// The tasks that a claim took from the store, by the ids of the model.
fn taken(answer: &Answer, store: &Book, model: &Book) -> Vec<TaskId> {
    let Answer::Claimed(claim) = answer else { return Vec::new() };
    let known = |id| model.task_id(usize::try_from(store.number(id).raw()).ok()?);
    claim.tasks.iter().filter_map(|task| known(task.id)).collect()
}

/// When every worker has died and every task is due, no task is stranded.
async fn rest(harness: &dyn Harness, store: &dyn windlass_core::Store) -> Result<(), String> {
    harness.advance(Duration::from_hours(1)).await;
    store.expire_workers(ops::MANY).await.map_err(|error| error.to_string())?;
    store.promote_due(ops::MANY).await.map_err(|error| error.to_string())?;
    store.admit(ops::MANY).await.map_err(|error| error.to_string())?;
    audit(store).await
}

async fn audit(store: &dyn windlass_core::Store) -> Result<(), String> {
    match store.audit().await {
        Ok(findings) if findings.is_empty() => Ok(()),
        findings => Err(format!("the audit found {findings:?}")),
    }
}
