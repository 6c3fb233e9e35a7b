//! Statements that are broken on purpose: the cases that each of them names must notice it.
//!
//! A file in `tests/mutants` is called `<statement>.<what>.sql`. Its first line says what is broken and which
//! cases notice it. The cases are those of every store, and the races of this one (`own::`).

use std::{collections::BTreeSet, path::Path, sync::Mutex, time::Duration};

use windlass_conformance::Case;
use windlass_postgres::{Schema, inside};

use crate::{gate_races, lanes, place::Place, support::PostgresHarness};

/// A broken store may wait for ever.
const CASE_MAX: Duration = Duration::from_secs(45);
/// Cases at once.
const THREADS: usize = 4;
/// Lines in which a mutant may differ from its statement: more means that the statement was changed and the
/// mutant was not.
const CHANGED_LINES_MAX: usize = 3;

struct Mutant {
    statement: String,
    file: String,
    cases: Vec<String>,
    text: String,
}

fn mutants() -> Vec<Mutant> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut mutants: Vec<Mutant> = files.map(|path| read(&path)).collect();
    mutants.sort_by(|one, two| one.file.cmp(&two.file));
    mutants
}

fn read(path: &Path) -> Mutant {
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let (header, _) = text.split_once('\n').unwrap();
    assert!(header.starts_with("-- Broken: ") && header.contains(" Breaks "), "{file}: {header}");
    let (_, cases) = header.split_once("Noticed by ").unwrap_or_else(|| panic!("{file} names no case"));
    let cases = cases.split(", ").map(str::to_owned).collect();
    let statement = file.split('.').next().unwrap().to_owned();
    Mutant { statement, file, cases, text }
}

/// Runs a case; answers how it failed, if it did.
fn failure(case: &str, broken: Option<&Mutant>) -> Option<String> {
    let replaced: Vec<_> =
        broken.map(|mutant| (mutant.statement.clone(), mutant.text.clone())).into_iter().collect();
    let case = case.to_owned();
    let run = std::thread::spawn(move || {
        let harness = PostgresHarness::new().with(move |mut options| {
            options.replaced.clone_from(&replaced);
            options
        });
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let run = match gate_races::CHECKS.iter().chain(lanes::CHECKS).find(|(name, _)| *name == case) {
                Some((_, check)) => check(&harness),
                None => {
                    (Case::named(&case).unwrap_or_else(|| panic!("there is no case {case}")).run)(&harness)
                }
            };
            tokio::time::timeout(CASE_MAX, run).await.expect("the case comes to an end");
        });
    });
    let failed = run.join().err()?;
    let text = failed.downcast_ref::<String>().cloned();
    Some(text.or_else(|| failed.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// Checks all of them, a few at a time; answers what is wrong.
fn look<T: Send>(at: Vec<T>, wrong: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let (left, found) = (Mutex::new(at), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(next) = left.lock().unwrap().pop() else { return };
                    found.lock().unwrap().extend(wrong(&next));
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn every_mutant_is_noticed_by_the_cases_that_it_names() {
    let missed = look(mutants(), |mutant| {
        let missed = mutant.cases.iter().filter(|case| failure(case, Some(mutant)).is_none());
        missed.map(|case| format!("{} survives {case}", mutant.file)).collect()
    });
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn the_cases_that_mutants_name_pass_without_them() {
    let cases: BTreeSet<String> = mutants().into_iter().flat_map(|mutant| mutant.cases).collect();
    let failed = look(cases.into_iter().collect(), |case| {
        failure(case, None).map(|why| format!("{case}: {why}")).into_iter().collect()
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim_start().starts_with("--")).collect()
}

/// A mutant that the server refuses would be noticed by every case, and show nothing.
#[tokio::test]
async fn every_mutant_is_a_statement_but_for_a_few_lines() {
    let place = Place::new();
    drop(place.make().await);
    let client = place.client().await;
    let statements = inside::statements(&Schema::default());
    let mutants = mutants();
    for mutant in &mutants {
        let statement = statements.iter().find(|statement| statement.name == mutant.statement);
        let statement = statement.unwrap_or_else(|| panic!("{} is a mutant of no statement", mutant.file));
        let (whole, broken) = (lines(&statement.text), inside::whole(&mutant.text));
        let broken = lines(&broken);
        let changed = broken.iter().filter(|line| !whole.contains(line)).count();
        let missing = whole.iter().filter(|line| !broken.contains(line)).count();
        assert!(
            (1..=CHANGED_LINES_MAX).contains(&changed.max(missing)),
            "{}: {changed} changed and {missing} missing lines",
            mutant.file
        );
        let text = inside::whole(&mutant.text).replace("windlass.", &format!("\"{}\".", place.schema));
        let prepared = client.prepare_typed(&text, statement.types).await;
        assert!(prepared.is_ok(), "{}: {:?}", mutant.file, prepared.err());
    }
    for statement in
        ["job_promote", "job_count", "job_demote", "workflow_pass", "workflow_place", "settle_done"]
    {
        assert!(mutants.iter().any(|mutant| mutant.statement == statement), "{statement} has no mutant");
    }
}
