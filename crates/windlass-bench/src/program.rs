//! The `windlass` program itself, which long runs and the demo are measured on.

use std::process::Command;

/// Names another program than the one beside this one.
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
    // It is no setting of the program, which warns of names that it does not know.
    command.env_remove(VARIABLE);
    Ok(command)
}
