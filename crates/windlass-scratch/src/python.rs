//! A Python with the packages that a test needs, for tests from the view of other languages.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::Error;

/// An interpreter that can import `psycopg` (version 3). See [`python_with`].
pub fn python_with_psycopg() -> Result<PathBuf, Error> {
    python_with(
        "psycopg",
        "it (Debian: apt-get install python3-psycopg; elsewhere: pip install 'psycopg[binary]')",
    )
}

/// An interpreter that can import a package: from `WINDLASS_TEST_PYTHON`, the search path, or the system,
/// whose interpreter alone sees the packages of the system.
pub fn python_with(package: &'static str, install: &'static str) -> Result<PathBuf, Error> {
    let chosen = env::var_os("WINDLASS_TEST_PYTHON").map(PathBuf::from);
    let candidates = chosen.into_iter().chain(["python3", "/usr/bin/python3"].map(PathBuf::from));
    let can_import = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", &format!("import {package}")]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    candidates.into_iter().find(can_import).ok_or(Error::Missing { what: package, install })
}
