//! Every statement against the schema that the migrations make.

use std::{collections::BTreeSet, path::Path};

use windlass_postgres::inside;

use crate::place::Place;

fn texts_in(folder: &str, extension: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == extension));
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

#[tokio::test]
async fn every_statement_fits_the_schema_and_has_the_types_that_the_server_sees() {
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
    let files: BTreeSet<String> = texts_in("sql", "sql").into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, known, "files on the left, statements on the right");
    let sources = texts_in("src", "rs");
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
