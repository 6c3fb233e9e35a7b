//! The files of the workspace.

use std::path::{Path, PathBuf};

/// Folders without source; the last three are left by Python's tools.
const SKIPPED: [&str; 5] = ["target", ".git", "__pycache__", ".mypy_cache", ".pytest_cache"];

/// The folder of the workspace.
pub fn workspace_root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    crates.map(Path::to_path_buf).unwrap_or_default()
}

/// Every file of the tree, relative to the workspace root, sorted.
pub fn files() -> Vec<PathBuf> {
    let root = workspace_root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_skipped => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    found.extend(path.strip_prefix(&root).map(Path::to_path_buf));
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The text of a file of the tree.
///
/// # Panics
/// If it cannot be read as text: a rule that cannot read a file must not pass.
#[expect(clippy::panic, reason = "only tests call this, and the message names the file")]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = workspace_root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
