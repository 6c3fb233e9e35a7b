//! The `windlass` program itself; long runs and the demo measure it.

use std::process::Command;

/// Names another program than the one in this program's folder.
const VARIABLE: &str = "WINDLASS_BIN";

/// A command of the program.
pub(crate) fn windlass() -> anyhow::Result<Command> {
    let path = match std::env::var_os(VARIABLE) {
        Some(path) => path.into(),
        None => std::env::current_exe()?.with_file_name(format!("windlass{}", std::env::consts::EXE_SUFFIX)),
    };
    anyhow::ensure!(
        path.is_file(),
        "no program {}; build it with `cargo build --release -p windlass-cli`, or name it in {VARIABLE}",
        path.display()
    );
    let mut command = Command::new(path);
    // The variable is no setting of the program, which would warn about it.
    command.env_remove(VARIABLE);
    Ok(command)
}
