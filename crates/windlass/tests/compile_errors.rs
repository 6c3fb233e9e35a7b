//! What the compiler reports for a user's mistake: each file in `compile-fail/` must be refused, with the
//! lines that it expects.
//!
//! The files are compiled against the library of this very build, so nothing is built twice.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use windlass_core::text::is_unsafe;

/// Compiles one file against the library; returns whether it was accepted, and the compiler's output.
fn compile(file: &Path) -> (bool, String) {
    let library = library();
    let out = tempfile::tempdir().unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--color",
            "never",
            "-A",
            "dead_code",
        ])
        .arg("--out-dir")
        .arg(out.path())
        .arg("--extern")
        .arg(format!("windlass={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", library.parent().unwrap().display()))
        .arg(file)
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The library that was built with this test: beside it, and the newest if there are several, because that
/// one was made from the current source.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let is_library = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libwindlass-") && path.extension().is_some_and(|end| end == "rlib")
    };
    fs::read_dir(&deps)
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(is_library)
        .max_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
        .unwrap_or_else(|| panic!("no libwindlass-*.rlib in {}", deps.display()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compile-fail")
}

/// Checks one file of the folder against its expected lines.
fn refused(name: &str) {
    let file = folder().join(name).with_extension("rs");
    let source = fs::read_to_string(&file).unwrap();
    let expected: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("//! expect: ")).collect();
    assert!(!expected.is_empty(), "{name} expects nothing");
    let (accepted, said) = compile(&file);
    assert!(!accepted, "{name} was accepted");
    for line in expected {
        assert!(said.contains(line), "{name}: the compiler did not say {line:?} but\n{said}");
    }
}

macro_rules! refused {
    ($($name:ident: $file:literal,)*) => {
        const CHECKED: &[&str] = &[$($file),*];
        $(#[test] fn $name() { refused($file); })*
    };
}

refused! {
    forgetting_a_state_does_not_compile_and_names_it: "missing_state",
    forgetting_the_only_state_does_not_compile_and_names_it: "no_state",
    a_handler_that_is_not_async_is_refused: "not_async",
    a_payload_that_is_not_a_task_is_refused_with_the_derive_to_add: "not_a_task",
    enqueueing_what_is_not_a_task_is_refused: "not_enqueueable",
    a_future_that_cannot_move_between_threads_is_refused_with_the_value_that_hinders: "not_send",
    arguments_in_the_wrong_order_are_refused_with_the_right_order: "wrong_arguments",
    a_result_that_is_no_outcome_is_refused_with_what_may_be_returned: "wrong_result",
    a_wrong_attribute_is_refused_with_the_known_ones: "wrong_attribute",
}

#[test]
fn every_shape_of_handler_compiles() {
    let (accepted, said) = compile(&folder().join("fits.rs"));
    assert!(accepted, "{said}");
}

#[test]
fn every_file_in_the_folder_is_checked() {
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(name == "fits" || CHECKED.contains(&name.as_str()), "{name}.rs has no test");
    }
}

/// A struct for each letter, which has it in its kind or its queue.
fn structs(letters: &[char]) -> String {
    let one = |(n, letter): (usize, &char)| {
        let setting = ["kind", "queue"][n % 2];
        let text = letter.escape_unicode();
        format!("#[derive(windlass::Task)] #[task({setting} = \"a{text}b\")] struct S{n};\n")
    };
    letters.iter().enumerate().map(one).collect()
}

#[test]
fn every_unsafe_character_in_a_kind_is_a_compile_error() {
    let is_edge = |letter: &char| {
        let code = u32::from(*letter);
        let beside = [code.wrapping_sub(1), code + 1].map(|code| char::from_u32(code).is_some_and(is_unsafe));
        beside != [is_unsafe(*letter); 2]
    };
    let (bad, good): (Vec<char>, Vec<char>) =
        ('\0'..=char::MAX).filter(is_edge).partition(|letter| is_unsafe(*letter));
    assert!(bad.len() > 30 && good.len() > 30, "{bad:?} {good:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.rs");
    for (letters, errors) in [(&bad, bad.len()), (&good, 0)] {
        fs::write(&file, structs(letters)).unwrap();
        let (_, said) = compile(&file);
        assert_eq!(said.matches("error: this name has").count(), errors, "{said}");
    }
}
