//! Licences and sources of every locked dependency against deny.toml.
//!
//! `cargo deny` uses the same file; reading it here makes every test run check it without a tool that takes
//! minutes to build.

use std::collections::BTreeSet;

use crate::metadata::metadata;

struct Policy {
    licences: BTreeSet<String>,
    registries: BTreeSet<String>,
}

fn policy() -> Policy {
    let text = e2e::read("deny.toml");
    let file: toml::Table = text.parse().expect("deny.toml is TOML");
    let list = |section: &str, key: &str| -> BTreeSet<String> {
        let items = file[section][key].as_array().unwrap_or_else(|| panic!("{section}.{key} is a list"));
        items.iter().map(|item| item.as_str().expect("a text").to_owned()).collect()
    };
    assert!(list("sources", "allow-git").is_empty(), "git sources are not checked here");
    Policy { licences: list("licenses", "allow"), registries: list("sources", "allow-registry") }
}

/// Whether an SPDX expression can be satisfied with allowed licences alone.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // Crates older than SPDX write "MIT/Apache-2.0" for a choice.
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = text.split_whitespace().collect::<Vec<_>>().into_iter().peekable();
    let allowed = either(&mut words, allowed);
    assert!(words.next().is_none(), "licence expression {expression:?} is not understood");
    allowed
}

type Words<'a> = std::iter::Peekable<std::vec::IntoIter<&'a str>>;

fn either(words: &mut Words, allowed: &BTreeSet<String>) -> bool {
    let mut any = both(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        any |= both(words, allowed);
    }
    any
}

fn both(words: &mut Words, allowed: &BTreeSet<String>) -> bool {
    let mut all = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        all &= one(words, allowed);
    }
    all
}

fn one(words: &mut Words, allowed: &BTreeSet<String>) -> bool {
    let word = words.next().expect("a licence");
    if word == "(" {
        let inside = either(words, allowed);
        assert_eq!(words.next(), Some(")"), "an open bracket is closed");
        return inside;
    }
    let name = match words.next_if_eq(&"WITH") {
        Some(_) => format!("{word} WITH {}", words.next().expect("an exception")),
        None => word.to_owned(),
    };
    allowed.contains(&name)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let policy = policy();
    let bad: Vec<String> = metadata()
        .packages
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(|text| is_allowed(text, &policy.licences)))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    assert!(bad.is_empty(), "not allowed by deny.toml: {bad:#?}");
}

#[test]
fn every_dependency_comes_from_an_allowed_registry() {
    let policy = policy();
    let is_known = |source: &str| {
        source.strip_prefix("registry+").is_some_and(|registry| policy.registries.contains(registry))
    };
    let members = &metadata().workspace_members;
    let bad: Vec<String> = metadata()
        .packages
        .iter()
        .filter(|package| match &package.source {
            Some(source) => !is_known(source),
            // A path outside of the workspace is a source that other machines do not have.
            None => !members.contains(&package.id),
        })
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.source))
        .collect();
    assert!(bad.is_empty(), "not allowed by deny.toml: {bad:#?}");
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed =
        BTreeSet::from(["MIT".to_owned(), "ISC".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()]);
    for yes in
        ["MIT", "GPL-3.0 OR MIT", "MIT/GPL-3.0", "(GPL-3.0 OR MIT) AND ISC", "Apache-2.0 WITH LLVM-exception"]
    {
        assert!(is_allowed(yes, &allowed), "{yes}");
    }
    for no in
        ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR (MIT AND GPL-2.0)", "Apache-2.0", "ISC AND (GPL-3.0)"]
    {
        assert!(!is_allowed(no, &allowed), "{no}");
    }
}
