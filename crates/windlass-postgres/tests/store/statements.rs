//! Every statement against the schema that the migrations make.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use windlass_postgres::inside;

use crate::place::Place;

/// The files below a folder, by name; parts and migrations are no statements.
fn texts_in(folder: &Path, extension: &str) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "parts" && name != "migrations" {
            texts.extend(texts_in(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            texts.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    texts
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Writes every statement as the server gets it to `target/statements`, so that it can be read and explained.
#[test]
fn every_statement_can_be_read_whole() {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder("../../target"), PathBuf::from);
    let to = target.join("statements");
    std::fs::create_dir_all(&to).unwrap();
    for statement in inside::statements(&windlass_postgres::Schema::default()) {
        assert!(!statement.text.contains("{may_") && !statement.text.contains(" :"), "{}", statement.text);
        std::fs::write(to.join(format!("{}.sql", statement.name)), &*statement.text).unwrap();
    }
}

#[tokio::test]
async fn every_statement_fits_the_schema_and_its_types() {
    let place = Place::new();
    drop(place.make().await);
    let client = place.client().await;
    let mut wrong = Vec::new();
    for statement in inside::statements(&place.options().schema) {
        match client.prepare(&statement.text).await {
            Ok(seen) if seen.params() == statement.types => {}
            Ok(seen) => {
                wrong.push(format!("{}: {:?} is {:?}", statement.name, statement.types, seen.params()));
            }
            Err(error) => wrong.push(format!("{}: {error:?}", statement.name)),
        }
        if let Err(error) = client.prepare_typed(&statement.text, statement.types).await {
            wrong.push(format!("{}: {error:?}", statement.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_statement_file_is_used() {
    let schema = windlass_postgres::Schema::default();
    let known: BTreeSet<String> =
        inside::statements(&schema).iter().map(|statement| statement.name.to_owned()).collect();
    let files: BTreeSet<String> = texts_in(&folder("sql"), "sql").into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, known, "files on the left, statements on the right");
    let sources = texts_in(&folder("src"), "rs");
    let list = &sources.iter().find(|(name, _)| name == "sql").unwrap().1;
    let constants = list.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(" \""));
    let constants: Vec<&str> = constants
        .map(|(constant, _)| constant)
        .filter(|constant| constant.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        .collect();
    assert_eq!(constants.len(), known.len(), "{constants:?}");
    let is_used = |constant: &&str| {
        let use_of = format!("sql::{constant}");
        sources.iter().any(|(_, text)| {
            text.match_indices(&use_of).any(|(at, _)| {
                let next = text[at + use_of.len()..].bytes().next();
                !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            })
        })
    };
    let unused: Vec<_> = constants.into_iter().filter(|constant| !is_used(constant)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}
