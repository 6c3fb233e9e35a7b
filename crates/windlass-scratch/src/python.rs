//! A Python that can talk to PostgreSQL, for tests of what users of other languages do.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::Error;

/// An interpreter that can import `psycopg` (version 3): from `WINDLASS_TEST_PYTHON`, the search path, or the system's own,
/// which alone sees the packages of the system.
pub fn python_with_psycopg() -> Result<PathBuf, Error> {
    let chosen = env::var_os("WINDLASS_TEST_PYTHON").map(PathBuf::from);
    let candidates = chosen.into_iter().chain(["python3", "/usr/bin/python3"].map(PathBuf::from));
    let can_import = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import psycopg"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    candidates.into_iter().find(can_import).ok_or(Error::Missing {
        what: "psycopg for Python 3",
        install: "it (Debian: apt-get install python3-psycopg; elsewhere: pip install 'psycopg[binary]')",
    })
}
