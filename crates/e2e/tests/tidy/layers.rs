//! ARCHITECTURE.md against `cargo metadata`: its tables match the build.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::{Package, metadata};

/// The suite that every store runs: only tests may depend on it.
const SUITE: &str = "windlass-conformance";

/// One row of the table of layers.
struct Row {
    layer: u32,
    uses: BTreeSet<String>,
}

/// The rows of the first table after a heading, as cells of trimmed text.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = e2e::read("ARCHITECTURE.md");
    let after = text.split_once(heading).unwrap_or_else(|| panic!("ARCHITECTURE.md has no {heading:?}")).1;
    after
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The names between backticks.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn only_name(cell: &str) -> String {
    let names = names(cell);
    assert_eq!(names.len(), 1, "one crate per row, found {cell:?}");
    names.into_iter().next().unwrap()
}

fn layers() -> BTreeMap<String, Row> {
    let mut layers = BTreeMap::new();
    for row in table("## Layers") {
        let layer = row[0].parse().unwrap_or_else(|_| panic!("a layer is a number, found {:?}", row[0]));
        let double = layers.insert(only_name(&row[1]), Row { layer, uses: names(&row[2]) });
        assert!(double.is_none(), "{} stands twice in the table of layers", row[1]);
    }
    layers
}

fn uses(package: &Package, kind: Option<&str>, ours: &BTreeSet<String>) -> BTreeSet<String> {
    let of_kind = package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() == kind);
    of_kind.map(|dependency| dependency.name.clone()).filter(|name| ours.contains(name)).collect()
}

fn ours() -> BTreeSet<String> {
    metadata().members().map(|package| package.name.clone()).collect()
}

#[test]
fn architecture_lists_every_crate_and_what_it_uses() {
    let (layers, ours) = (layers(), ours());
    assert_eq!(
        layers.keys().cloned().collect::<BTreeSet<_>>(),
        ours,
        "crates in ARCHITECTURE.md and in the tree"
    );
    for package in metadata().members() {
        let real = uses(package, None, &ours);
        assert_eq!(layers[&package.name].uses, real, "what {} uses, table and Cargo.toml", package.name);
    }
}

#[test]
fn every_crate_uses_lower_layers_only() {
    let (layers, ours) = (layers(), ours());
    for package in metadata().members() {
        let own = layers[&package.name].layer;
        for name in uses(package, None, &ours) {
            assert!(layers[&name].layer < own, "{} (layer {own}) uses {name}", package.name);
            assert_ne!(name, SUITE, "{}: the suite is for tests", package.name);
        }
        for name in uses(package, Some("dev"), &ours) {
            assert!(name == SUITE || layers[&name].layer < own, "tests of {} use {name}", package.name);
        }
    }
}

#[test]
fn heavy_dependencies_stay_where_architecture_puts_them() {
    for row in table("## Where heavy dependencies may appear") {
        let (dependency, allowed) = (only_name(&row[0]), names(&row[1]));
        let real: BTreeSet<String> = metadata()
            .members()
            .filter(|package| package.dependencies.iter().any(|d| d.kind.is_none() && d.name == dependency))
            .map(|package| package.name.clone())
            .collect();
        assert_eq!(real, allowed, "crates that use {dependency}, Cargo.toml and table");
    }
}
