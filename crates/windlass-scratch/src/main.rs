//! `windlass-scratch postgres -- COMMAND`: runs a command with a private PostgreSQL or RabbitMQ beside it.

use std::{
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::Command,
    runtime,
    signal::unix::{SignalKind, signal},
};
use windlass_scratch::{Broker, Cluster, ClusterOptions, SHARED_NODE_VARIABLE, SHARED_URL_VARIABLE, mortal};

const USAGE: &str = "\
Runs a command with a private server beside it, which is gone when the command ends.

Usage: windlass-scratch postgres [--fsync on|off] [--set NAME=VALUE]… -- COMMAND…
       windlass-scratch rabbitmq -- COMMAND…

The command finds the URL of PostgreSQL in WINDLASS_TEST_POSTGRES, the folder of RabbitMQ in WINDLASS_TEST_RABBITMQ. It runs in a process group of its own; INT, TERM
and HUP are passed on to that group. Exit codes: the command's own, 128 + signal if a signal ended it, 2 wrong usage or
something is missing.";

/// The parsed arguments.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    server: Server,
    command: Vec<String>,
}

/// Which server, and its options.
#[derive(Debug, PartialEq, Eq)]
enum Server {
    Postgres { is_durable: bool, settings: Vec<(String, String)> },
    RabbitMq,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if matches!(arguments.first().map(String::as_str), Some("-h" | "--help")) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match parse(arguments).and_then(|arguments| run(&arguments)) {
        Ok(code) => code,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: Vec<String>) -> Result<Arguments, String> {
    let mut words = arguments.into_iter();
    let server = match words.next().as_deref() {
        Some("postgres") => parse_postgres(&mut words)?,
        Some("rabbitmq") => {
            separator(words.next().as_deref())?;
            Server::RabbitMq
        }
        _ => return Err(format!("which server?\n\n{USAGE}")),
    };
    let command: Vec<String> = words.collect();
    if command.is_empty() {
        Err("no command; it comes after --".to_owned())
    } else {
        Ok(Arguments { server, command })
    }
}

/// Reads options up to the separator.
fn parse_postgres(words: &mut impl Iterator<Item = String>) -> Result<Server, String> {
    let (mut is_durable, mut settings) = (true, Vec::new());
    loop {
        match words.next().as_deref() {
            Some("--fsync") => match words.next().as_deref() {
                Some("on") => is_durable = true,
                Some("off") => is_durable = false,
                _ => return Err("--fsync is on or off".to_owned()),
            },
            Some("--set") => {
                let pair = words.next().unwrap_or_default();
                let (name, value) = pair.split_once('=').ok_or("--set takes NAME=VALUE")?;
                settings.push((name.to_owned(), value.to_owned()));
            }
            word => {
                separator(word)?;
                return Ok(Server::Postgres { is_durable, settings });
            }
        }
    }
}

/// Checks the separator before the command.
fn separator(word: Option<&str>) -> Result<(), String> {
    match word {
        Some("--") => Ok(()),
        Some(other) => Err(format!("unknown argument {other}; the command comes after --")),
        None => Err("no command; it comes after --".to_owned()),
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let status = match &arguments.server {
        Server::Postgres { is_durable, settings } => {
            let mut options = ClusterOptions::new();
            if !is_durable {
                options = options.without_fsync();
            }
            for (name, value) in settings {
                options = options.set(name, value);
            }
            let cluster = Cluster::start(&options).map_err(|error| error.to_string())?;
            runtime.block_on(follow(&arguments.command, SHARED_URL_VARIABLE, cluster.url()))?
        }
        Server::RabbitMq => {
            let broker = Broker::start().map_err(|error| error.to_string())?;
            let folder = broker.node().folder().to_string_lossy().into_owned();
            runtime.block_on(follow(&arguments.command, SHARED_NODE_VARIABLE, folder))?
        }
    };
    Ok(exit_code(status))
}

/// Runs the command to its end and passes signals on to it.
async fn follow(command: &[String], variable: &str, value: String) -> Result<ExitStatus, String> {
    // If this process is killed, the kernel asks the command to end too; otherwise only the server would end.
    let mut words = mortal("TERM");
    words.extend(command.iter().map(Into::into));
    let (program, rest) = words.split_first().ok_or("no command")?;
    let listen = |kind| signal(kind).map_err(|error| error.to_string());
    let mut interrupts = listen(SignalKind::interrupt())?;
    let mut terminates = listen(SignalKind::terminate())?;
    let mut hangups = listen(SignalKind::hangup())?;
    // A process group of its own gets each signal once, whether the signal was sent to this process or to its
    // whole group.
    let mut child = Command::new(program)
        .args(rest)
        .env(variable, value)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    loop {
        let signal = tokio::select! {
            status = child.wait() => return status.map_err(|error| error.to_string()),
            Some(()) = interrupts.recv() => Signal::INT,
            Some(()) = terminates.recv() => Signal::TERM,
            Some(()) = hangups.recv() => Signal::HUP,
        };
        if let Some(group) = group {
            // The command may just have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Arguments, Server, parse};

    fn parsed(line: &str) -> Result<Arguments, String> {
        parse(line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn options_stand_before_the_command() {
        let arguments = parsed("postgres --fsync off --set max_connections=7 -- ls --set").unwrap();
        let settings = vec![("max_connections".to_owned(), "7".to_owned())];
        let command = vec!["ls".to_owned(), "--set".to_owned()];
        let server = Server::Postgres { is_durable: false, settings };
        assert_eq!(arguments, Arguments { server, command });
        let arguments = parsed("rabbitmq -- ls").unwrap();
        assert_eq!(arguments, Arguments { server: Server::RabbitMq, command: vec!["ls".to_owned()] });
    }

    #[test]
    fn wrong_usage_is_reported() {
        for (line, part) in [
            ("mysql -- ls", "which server"),
            ("postgres", "no command"),
            ("postgres --", "no command"),
            ("postgres --fsync maybe -- ls", "on or off"),
            ("postgres --set x -- ls", "NAME=VALUE"),
            ("postgres ls", "unknown argument ls"),
            ("rabbitmq --fsync off -- ls", "unknown argument --fsync"),
            ("rabbitmq --", "no command"),
        ] {
            let reason = parsed(line).unwrap_err();
            assert!(reason.contains(part), "{line}: {reason}");
        }
    }
}
