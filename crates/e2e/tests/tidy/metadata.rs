//! The output of `cargo metadata` about the workspace and its dependencies.

use std::{process::Command, sync::OnceLock};

use serde::Deserialize;

/// The fields of the output that the rules need.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub workspace_members: Vec<String>,
}

/// One package, of this workspace or another.
#[derive(Debug, Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// `None` for a package of this workspace.
    pub source: Option<String>,
    pub dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]` table.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `None` for a normal dependency, else "dev" or "build".
    pub kind: Option<String>,
}

impl Metadata {
    /// The packages of this workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

/// Reads the metadata once.
pub fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--all-features"])
            .current_dir(e2e::workspace_root())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
    })
}
