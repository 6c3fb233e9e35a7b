//! Rules about the files of the tree.

use std::path::Path;

/// A longer file probably contains a second idea. Tests and generated code are exempt.
const LINES_MAX: usize = 500;

/// Whether a file is a test or was generated: then its length is no sign of a second idea.
fn is_exempt(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "test" | "generated")))
}

/// Every place with one of the needles in a Rust file, as `file:line`.
fn places(needles: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for path in e2e::files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        for (number, line) in e2e::read(&path).lines().enumerate() {
            if needles.iter().any(|needle| line.contains(needle)) {
                places.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    places
}

#[test]
fn no_file_holds_a_second_idea() {
    let long: Vec<String> = e2e::files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs") && !is_exempt(path))
        .map(|path| (e2e::read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{} ({lines} lines)", path.display()))
        .collect();
    assert!(long.is_empty(), "over {LINES_MAX} lines: {long:#?}");
}

#[test]
fn nothing_unfinished_is_left_in_the_code() {
    // Written in two halves, so that this file does not find itself.
    let needles = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];
    assert_eq!(places(&needles), Vec::<String>::new());
}

/// The files in which tests start programs. Each cleans the environment, so that the program finds no server
/// of the machine.
const STARTERS: [&str; 2] = ["crates/e2e/src/process.rs", "crates/windlass-cli/tests/cli/support.rs"];

#[test]
fn tests_start_the_program_where_no_server_can_be_found() {
    // Other programs may be started anywhere: each is a quoted word, or one of these.
    let others = [
        "(compiler)",
        "(python)",
        "(program)",
        "(place.join(",
        "(workspace_root()",
        "(e2e::workspace_root()",
        "(env!(\"CARGO\")",
    ];
    let mut wrong = Vec::new();
    for path in e2e::files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let shown = path.display().to_string();
        // Its tests start only its own program.
        let is_scratch = shown.starts_with("crates/windlass-scratch/");
        let is_test = !is_scratch && (is_exempt(&path) || shown.starts_with("crates/e2e/"));
        if !is_test || STARTERS.contains(&shown.as_str()) {
            continue;
        }
        for (number, line) in e2e::read(&path).lines().enumerate() {
            let started = line.split_once(concat!("Command", "::new")).map(|(_, rest)| rest);
            let is_other = |rest: &str| {
                rest.starts_with("(\"")
                    || rest.contains("current_exe")
                    || others.iter().any(|other| rest.starts_with(other))
            };
            if started.is_some_and(|rest| !is_other(rest))
                || line.contains(concat!("CARGO_BIN_EXE_", "windlass\""))
            {
                wrong.push(format!("{shown}:{}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "start it with one of {STARTERS:?}: {wrong:#?}");
}

#[test]
fn no_test_is_switched_off() {
    let needles = [concat!("#[", "ignore"), concat!("should_", "panic")];
    assert_eq!(places(&needles), Vec::<String>::new());
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let roots = [concat!("/wo", "rk/"), concat!("/fa", "rm/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut found = Vec::new();
    for path in
        e2e::files().into_iter().filter(|path| path.file_name().is_some_and(|name| name != "Cargo.lock"))
    {
        let Ok(text) = std::fs::read_to_string(e2e::workspace_root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            let is_absolute =
                |at: usize| !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '.');
            if roots.iter().any(|root| line.match_indices(root).any(|(at, _)| is_absolute(at))) {
                found.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "paths that exist on one machine only: {found:#?}");
}

#[test]
fn relative_links_in_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for path in e2e::files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = e2e::read(&path);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            if !e2e::workspace_root().join(folder).join(target).exists() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

#[test]
fn ci_runs_exactly_the_test_command_of_the_readme() {
    let commands: Vec<String> = e2e::read(".ci/run")
        .lines()
        .filter(|line| !line.trim_start().starts_with('#') && line.contains("scripts/"))
        .map(|line| line.trim().to_owned())
        .collect();
    assert_eq!(commands, ["exec scripts/test"]);
    assert!(e2e::read("README.md").contains("scripts/test"), "the README names the test command");
}

#[test]
fn no_crate_opts_out_of_the_lints() {
    let workspace: toml::Table = e2e::read("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let unsafe_code = &workspace["workspace"]["lints"]["rust"]["unsafe_code"];
    assert_eq!(unsafe_code.as_str(), Some("forbid"));
    let manifests =
        e2e::files().into_iter().filter(|path| path.starts_with("crates") && path.ends_with("Cargo.toml"));
    for path in manifests {
        let manifest: toml::Table = e2e::read(&path).parse().expect("Cargo.toml is TOML");
        let takes =
            manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        assert_eq!(takes, Some(true), "{} takes the lints of the workspace", path.display());
    }
}
