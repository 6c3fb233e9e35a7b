//! Statements of the gates that are broken on purpose: each must fail the cases that it names.
//!
//! A file in `tests/mutants` is called `<statement>.<what>.sql`. Its first line says what is broken and which
//! cases fail.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use windlass_conformance::run;
use windlass_sqlite::Durability;

use crate::support::SqliteHarness;

struct Mutant {
    file: String,
    /// The statement without the fault.
    original: String,
    text: String,
    cases: Vec<String>,
}

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn mutants() -> Vec<Mutant> {
    let files = std::fs::read_dir(at("tests/mutants")).unwrap().map(|file| file.unwrap().path());
    files.map(|path| read(&path)).collect()
}

fn read(path: &Path) -> Mutant {
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let (header, _) = text.split_once('\n').unwrap();
    assert!(header.starts_with("-- Broken: ") && header.contains(" Breaks "), "{file}: {header}");
    let (_, cases) = header.split_once("Noticed by ").unwrap_or_else(|| panic!("{file} names no case"));
    let cases = cases.split(", ").map(str::to_owned).collect();
    let statement = file.split('.').next().unwrap();
    let folders = std::fs::read_dir(at("sql")).unwrap().map(|folder| folder.unwrap().path());
    let original = folders
        .map(|folder| folder.join(format!("{statement}.sql")))
        .find_map(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_else(|| panic!("{file} is a mutant of no statement"));
    Mutant { file, original, text, cases }
}

/// Whether a case passes.
fn passes(case: &str, broken: Option<&Mutant>) -> bool {
    let mut harness = SqliteHarness::new(Durability::Normal);
    if let Some(mutant) = broken {
        harness = harness.replacing(mutant.original.clone(), mutant.text.clone());
    }
    let case = case.to_owned();
    std::thread::spawn(move || run(&case, &harness)).join().is_ok()
}

#[test]
fn every_mutant_is_noticed_by_the_cases_that_it_names() {
    let mutants = mutants();
    let mut missed = Vec::new();
    for mutant in &mutants {
        let survived = mutant.cases.iter().filter(|case| passes(case, Some(mutant)));
        missed.extend(survived.map(|case| format!("{} survives {case}", mutant.file)));
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(mutants.len() > 13, "too few mutants found");
}

#[test]
fn the_cases_that_mutants_name_pass_without_them() {
    let cases: BTreeSet<String> = mutants().into_iter().flat_map(|mutant| mutant.cases).collect();
    let failed: Vec<_> = cases.iter().filter(|case| !passes(case, None)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim_start().starts_with("--")).collect()
}

/// A mutant that SQLite refuses, or that takes other parameters, would fail every case and prove nothing.
#[test]
fn every_mutant_differs_from_its_statement_in_one_line() {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(&std::fs::read_to_string(at("schema.sql")).unwrap()).unwrap();
    for mutant in mutants() {
        let original = conn.prepare(&mutant.original).unwrap();
        let broken = conn.prepare(&mutant.text).unwrap_or_else(|error| panic!("{}: {error}", mutant.file));
        assert_eq!(original.parameter_count(), broken.parameter_count(), "{}", mutant.file);
        let (whole, broken) = (lines(&mutant.original), lines(&mutant.text));
        let changed = broken.iter().filter(|line| !whole.contains(line)).count();
        assert_eq!((changed, broken.len()), (1, whole.len()), "{}", mutant.file);
    }
}
