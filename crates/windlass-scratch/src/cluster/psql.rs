//! SQL through the psql program, for users without a driver.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use crate::{Error, keeper::owner::bare_command, programs};

/// Runs statements at a URL and returns their output: rows as lines, columns separated by `|`.
///
/// Every statement is a transaction of its own unless the text says otherwise; the first failure ends the
/// run.
pub fn psql(url: &str, sql: &str) -> Result<String, Error> {
    run(&programs::psql()?, url, sql)
}

/// The same with a given program.
pub fn run(program: &Path, url: &str, sql: &str) -> Result<String, Error> {
    let mut command = bare_command(program);
    command.args(["-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", "-"]);
    feed(command, sql)
}

/// Writes the text from a second thread: a statement may print more than a pipe holds before psql has read
/// all of the text.
fn feed(mut command: Command, sql: &str) -> Result<String, Error> {
    let failed = |reason: std::io::Error| Error::Psql(reason.to_string());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let output = thread::scope(|scope| {
        if let Some(mut input) = child.stdin.take() {
            // A psql that ends early reports the reason on its standard error.
            scope.spawn(move || input.write_all(sql.as_bytes()));
        }
        child.wait_with_output()
    })
    .map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let reason: Vec<&str> = text.split_whitespace().collect();
    Err(Error::Psql(reason.join(" ")))
}
