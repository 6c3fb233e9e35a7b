//! The memory of a consumer's pool. A counting allocator slows down every allocation of its process, so a
//! small separate program does the counting.

use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

/// The program; it is built and installed together with this one.
const PROGRAM: &str = "windlass-pool-bytes";

/// Bytes by number of workers.
pub(super) fn pool_bytes() -> anyhow::Result<Value> {
    let program = std::env::current_exe()?.with_file_name(PROGRAM);
    let output = Command::new(&program)
        .output()
        .with_context(|| format!("{} cannot be started; it is built with this program", program.display()))?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("it printed no JSON")
}
