//! How the tree reads: the table of steps, the size of folders, words and lengths.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// More files beside each other cannot be seen at one look.
const FILES_MAX: usize = 15;
/// Files of one store that a reader opens for one step.
const FILES_OF_STEP_MAX: usize = 7;
/// Columns of a comment line.
const COLUMNS_MAX: usize = 110;
/// Characters of the name of a test.
const TEST_NAME_MAX: usize = 60;
/// Words that name no actor, and metaphors that technical words have replaced. Each is written in two
/// halves, so that this
/// file does not find itself.
const BANNED: [&str; 11] = [
    concat!("who", "ever"),
    concat!("whom", "ever"),
    concat!("some", "body"),
    concat!("no", "body"),
    concat!("every", "body"),
    concat!("what is to", " be"),
    concat!("hear", "say"),
    concat!("whis", "per"),
    concat!("sat", "ed"),
    concat!("by ", "heart"),
    concat!("with the ", "hands"),
];

fn rust_files() -> impl Iterator<Item = PathBuf> {
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    e2e::files().into_iter().filter(is_rust).filter(|path| !path.to_string_lossy().contains("/generated/"))
}

/// The comment of a line, if it is one.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["///", "//!", "//", "--"].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

#[test]
fn the_table_of_steps_names_files_of_each_store() {
    let text = e2e::read(Path::new("ARCHITECTURE.md"));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("| Step |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').collect())
        .collect();
    assert!(rows.len() >= 8, "the table of steps is not where this test looks for it");
    let mut wrong = Vec::new();
    for row in &rows {
        let folders = ["crates", "crates/windlass-sqlite", "crates/windlass-postgres"];
        for (column, folder) in row.iter().skip(1).zip(folders) {
            let files: Vec<&str> = column.split('`').skip(1).step_by(2).collect();
            if files.len() > FILES_OF_STEP_MAX {
                wrong.push(format!("{}: {} files of {folder}", row[0].trim(), files.len()));
            }
            for file in files {
                if !e2e::workspace_root().join(folder).join(file).is_file() {
                    wrong.push(format!("{}: there is no {folder}/{file}", row[0].trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn both_stores_have_the_same_folders() {
    let folders = |of: &str| -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(e2e::workspace_root().join(of))
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    };
    let (sqlite, postgres) = (folders("crates/windlass-sqlite/src"), folders("crates/windlass-postgres/src"));
    // The writer's memory has no counterpart: PostgreSQL is the memory.
    let sqlite: Vec<_> = sqlite.into_iter().filter(|name| name != "memory").collect();
    assert_eq!(sqlite, postgres, "src of SQLite on the left, of PostgreSQL on the right");
    let (sqlite, postgres) = (folders("crates/windlass-sqlite/sql"), folders("crates/windlass-postgres/sql"));
    let postgres: Vec<_> = postgres.into_iter().filter(|name| name != "parts" && name != "wakeup").collect();
    assert_eq!(sqlite, postgres, "sql of SQLite on the left, of PostgreSQL on the right");
}

#[test]
fn no_folder_of_modules_is_too_large_to_see() {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for path in rust_files().filter(|path| path.components().any(|part| part.as_os_str() == "src")) {
        *folders.entry(path.parent().unwrap().to_string_lossy().into_owned()).or_default() += 1;
    }
    let large: Vec<_> = folders.iter().filter(|(_, files)| **files > FILES_MAX).collect();
    assert!(large.is_empty(), "over {FILES_MAX} files beside each other: {large:?}");
}

#[test]
fn comments_and_documents_use_no_banned_word() {
    let mut found = Vec::new();
    for path in e2e::files() {
        let kind = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let shown = path.display().to_string();
        if shown.contains("/generated/") || shown.contains("sql/migrations/") || shown.ends_with("schema.sql")
        {
            continue;
        }
        let is_document = kind == "md";
        if !is_document && !["rs", "sql", "proto"].contains(&kind) {
            continue;
        }
        let whole = e2e::read(&path);
        // A page that another one replaced keeps the words of its time.
        if whole.contains("*Superseded by [") {
            continue;
        }
        for (number, line) in whole.lines().enumerate() {
            let Some(text) = (if is_document { Some(line) } else { comment(line) }) else { continue };
            let text = text.to_lowercase();
            let is_word = |at: usize, word: &str| {
                let is_letter = |letter: Option<char>| {
                    letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
                };
                !is_letter(text[..at].chars().next_back())
                    && !is_letter(text[at + word.len()..].chars().next())
            };
            if let Some(word) =
                BANNED.iter().find(|word| text.match_indices(**word).any(|(at, word)| is_word(at, word)))
            {
                found.push(format!("{shown}:{}: {word}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn comment_lines_fit_the_page() {
    let mut long = Vec::new();
    for path in rust_files() {
        for (number, line) in e2e::read(&path).lines().enumerate() {
            if comment(line).is_some_and(|text| text.chars().count() > COLUMNS_MAX) {
                long.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(long.is_empty(), "over {COLUMNS_MAX} columns: {long:#?}");
}

#[test]
fn a_test_name_says_one_thing() {
    let mut long = Vec::new();
    for path in rust_files() {
        let text = e2e::read(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_test =
                line.trim_start().starts_with("#[test]") || line.trim_start().starts_with("#[tokio::test");
            let names = lines
                .iter()
                .skip(number + 1)
                .take(4)
                .find_map(|line| line.split_once("fn ").map(|(_, rest)| rest));
            let name = names.and_then(|rest| rest.split_once('(')).map_or("", |(name, _)| name);
            if is_test && name.len() > TEST_NAME_MAX {
                long.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "over {TEST_NAME_MAX} characters: {long:#?}");
}
