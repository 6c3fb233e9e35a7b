//! The windlass program: parse, run, exit code.

mod args;
mod backend;
mod bench;
mod commands;
mod config;
mod duration;
mod engine;
mod failure;
mod logging;
mod output;
mod screen;
mod session;
mod stop;
mod store;
mod version;

use std::{io, process::ExitCode};

use clap::Parser as _;

use crate::{
    args::{Cli, Command},
    commands::config::ConfigCommand,
    failure::{Exit, Failure},
    session::Session,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too; a closed pipe is no reason to fail.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match run(cli) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            let failure = Failure::of(&error);
            output::report(&failure);
            failure.exit.into()
        }
    }
}

/// The reader of our output went away (`windlass tasks ls | head`): that is its right.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let global = &cli.global;
    let exit = match cli.command {
        Command::Completions(args) => commands::completions::run(&args)?,
        Command::Config(ConfigCommand::Init { file }) => commands::config::init(&file, global.quiet)?,
        Command::Config(ConfigCommand::Docs) => commands::config::docs()?,
        Command::Config(ConfigCommand::Check) => {
            commands::config::check(&Session::start(global, Vec::new())?)?
        }
        Command::Bench(args) => return Ok(ExitCode::from(bench::run(args, global.json)?)),
        Command::Up(args) => {
            let session = Session::start(global, args.flags())?;
            many_threads()?.block_on(commands::up::run(&session, &args))?
        }
        Command::Worker(args) => {
            let session = Session::start(global, args.flags())?;
            many_threads()?.block_on(commands::worker::run(&session))?
        }
        command => {
            let session = Session::start(global, Vec::new())?;
            one_thread()?.block_on(until_interrupted(client(&session, command)))?
        }
    };
    Ok(exit.into())
}

/// Commands that ask a server or a store something and end.
async fn client(session: &Session, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Enqueue(args) => commands::enqueue::run(session, *args).await,
        Command::Tasks(command) => commands::tasks::run(session, command).await,
        Command::Queues(command) => commands::queues::run(session, command).await,
        Command::Workers(command) => commands::workers::run(session, &command).await,
        Command::Doctor(args) => commands::doctor::run(session, &args).await,
        Command::Migrate(args) => commands::migrate::run(session, &args).await,
        Command::Backup(args) => commands::backup::run(session, &args).await,
        Command::Restore(args) => commands::restore::run(session, args).await,
        Command::Health => commands::health::run(session).await,
        // The rest needs no runtime, or one of its own, and is run by the caller.
        _ => Ok(Exit::Done),
    }
}

/// Ctrl-C ends a command with 130. Nothing needs a hand afterwards: stores survive worse.
async fn until_interrupted(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    tokio::select! {
        ended = command => ended,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    }
}

fn many_threads() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn one_thread() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
