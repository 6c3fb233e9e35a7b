//! A running `windlass up`.

use std::{ffi::OsString, path::Path, process::Command};

use anyhow::Result;

use crate::{
    http::Api,
    process::{self, Process, START_LIMIT},
};

/// A server that has printed its address.
pub struct Up {
    /// The process.
    pub process: Process,
    /// Its address, such as `http://127.0.0.1:40123`.
    pub address: String,
}

/// The command `windlass up` on a store, on a free port, with `arguments` after it.
///
/// # Errors
/// If the program cannot be found.
pub fn up_command<A: Into<OsString>>(
    store: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Command> {
    let mut command = process::command(process::windlass()?);
    command.arg("up").arg("--store").arg(format!("sqlite:{}", store.display()));
    command.args(["--listen", "127.0.0.1:0"]);
    command.args(arguments.into_iter().map(Into::into));
    if let Some(folder) = store.parent().filter(|folder| folder.is_dir()) {
        // A `windlass.toml` in the developer's folder must not change a test.
        command.current_dir(folder);
    }
    Ok(command)
}

impl Up {
    /// Starts a command that serves, and waits for its address.
    ///
    /// # Errors
    /// If it ends or prints no address.
    pub fn start(command: Command) -> Result<Self> {
        Self::wait_for_address(Process::start(command)?)
    }

    /// Waits for the address of a process that another function started.
    ///
    /// # Errors
    /// If it ends or prints no address.
    pub fn wait_for_address(mut process: Process) -> Result<Self> {
        let address = process.wait_for(START_LIMIT, |line| {
            let at = line.find("http://127.0.0.1:")?;
            // In a JSON log line the address ends with a quote.
            line.get(at..)?.split(['"', ' ']).next().map(str::to_owned)
        })?;
        Ok(Self { process, address })
    }

    /// Starts `windlass up` on a store.
    ///
    /// # Errors
    /// If it ends or prints no address.
    pub fn on<A: Into<OsString>>(store: &Path, arguments: impl IntoIterator<Item = A>) -> Result<Self> {
        Self::start(up_command(store, arguments)?)
    }

    /// A client of the server.
    pub fn api(&self) -> Api {
        Api::new(&self.address)
    }
}
