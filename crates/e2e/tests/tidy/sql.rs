//! Rules about SQL: one statement per file, explicit columns, an order wherever there is a limit.

use std::path::PathBuf;

/// The statement files of the stores. Migrations and schema snapshots contain many statements on
/// purpose, and parts none.
fn statements() -> Vec<(PathBuf, String)> {
    e2e::files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .filter(|path| {
            let folder = path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
            let is_below_sql =
                path.parent().and_then(|folder| folder.parent()).is_some_and(|above| above.ends_with("sql"));
            path.starts_with("crates") && is_below_sql && folder != "migrations" && folder != "parts"
        })
        .map(|path| {
            let text = e2e::read(&path);
            let code: Vec<&str> =
                text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
            (path, code.join("\n"))
        })
        .collect()
}

fn offenders(is_bad: impl Fn(&str) -> bool) -> Vec<String> {
    statements().iter().filter(|(_, code)| is_bad(code)).map(|(path, _)| path.display().to_string()).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

#[test]
fn sql_files_hold_one_statement_each() {
    assert!(!statements().is_empty(), "no SQL file was found");
    let bad = offenders(|code| code.trim().trim_end_matches(';').contains(';') || code.trim().is_empty());
    assert!(bad.is_empty(), "not one statement: {bad:#?}");
}

#[test]
fn sql_names_its_columns() {
    let bad = offenders(|code| {
        code.split_whitespace().collect::<Vec<_>>().windows(2).any(|pair| pair == ["SELECT", "*"])
    });
    assert!(bad.is_empty(), "SELECT *: {bad:#?}");
}

#[test]
fn sql_with_a_limit_has_an_order() {
    let bad = offenders(|code| {
        let count = |what: &str| words(code).filter(|word| *word == what).count();
        // A count up to a bound is the same in any order.
        let bounded_counts = code.matches("(SELECT 1 ").count();
        count("LIMIT") > count("ORDER") + bounded_counts
    });
    assert!(bad.is_empty(), "LIMIT without ORDER BY: {bad:#?}");
}

#[test]
fn sql_keywords_are_upper_case() {
    const KEYWORDS: [&str; 12] = [
        "select",
        "insert",
        "update",
        "delete",
        "where",
        "from",
        "values",
        "set",
        "order",
        "limit",
        "join",
        "returning",
    ];
    let bad = offenders(|code| {
        // Text in quotes is data.
        let outside: String = code.split('\'').step_by(2).collect();
        words(&outside).any(|word| KEYWORDS.contains(&word))
    });
    assert!(bad.is_empty(), "lower-case keywords: {bad:#?}");
}
