//! The windlass program: parse, run, exit code.

mod access;
mod args;
mod backend;
mod commands;
mod config;
mod demo;
mod duration;
mod engine;
mod failure;
mod hints;
mod logging;
mod monitor;
mod output;
mod screen;
mod session;
mod spans;
mod stop;
mod store;
mod systemd;
mod top;
mod version;

use std::{io, process::ExitCode, time::Duration};

use clap::CommandFactory as _;

use crate::{
    args::{Cli, Command},
    commands::{config::ConfigCommand, store::copy::StoreCommand},
    failure::{Exit, Failure},
    session::Session,
};

fn main() -> ExitCode {
    let (cli, path) = match Cli::read() {
        Ok((cli, typed)) => (cli, command_path(&typed)),
        Err(error) => {
            // Help and version come this way too. A closed pipe is no failure.
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
            // Tests run the program as a debug build, so each test checks the hints that it sees.
            if cfg!(debug_assertions)
                && let Some(flag) =
                    failure.hint.and_then(|hint| hints::stray_flag(&Cli::command(), &path, &hint))
            {
                output::report(&Failure::usage(format!(
                    "the hint names --{flag}, but `{}` has no such flag",
                    path.join(" ")
                )));
            }
            failure.exit.into()
        }
    }
}

/// The names of the command and its subcommands, as the user typed them.
fn command_path(typed: &clap::ArgMatches) -> Vec<String> {
    let mut path = Vec::new();
    let mut here = typed.subcommand();
    while let Some((name, inner)) = here {
        path.push(name.to_owned());
        here = inner.subcommand();
    }
    path
}

/// Whether the reader of stdout closed it, as in `windlass tasks ls | head`. That is no failure.
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
        Command::Bench { .. } => return Err(no_benches().into()),
        Command::Demo(args) => {
            let session = Session::start(global, args.flags())?;
            serve(demo::run(&session, global.store.as_deref(), &args))?
        }
        Command::DemoSite(args) => {
            demo::run_site(&args)?;
            Exit::Done
        }
        Command::Up(args) => {
            let session = Session::start(global, args.flags())?;
            serve(commands::up::run(&session, &args))?
        }
        Command::Worker(args) => {
            let session = Session::start(global, args.flags())?;
            serve(commands::worker::run(&session, &args))?
        }
        Command::Top(args) => {
            let session = Session::start(global, Vec::new())?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(top::run(&session, &args))?
        }
        Command::Consume(args) => {
            let session = Session::start(global, args.flags())?;
            serve(commands::consume::run(&session, &args))?
        }
        command => {
            let session = Session::start(global, Vec::new())?;
            end_on_ctrl_c()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(client(&session, command))?
        }
    };
    Ok(exit.into())
}

/// Commands that send a request to a server or a store, and end.
async fn client(session: &Session, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Enqueue(args) => commands::enqueue::run(session, *args).await,
        Command::Tasks(command) => commands::tasks::run(session, command).await,
        Command::Queues(command) => commands::queues::run(session, command).await,
        Command::Jobs(command) => commands::jobs::run(session, command).await,
        Command::Workflows(command) => commands::workflows::run(session, command).await,
        Command::Schedules(command) => commands::schedules::run(session, command).await,
        Command::Workers(command) => commands::workers::run(session, &command).await,
        Command::Token(command) => commands::access::token::run(session, command).await,
        Command::Sessions(command) => commands::access::sessions::run(session, command).await,
        Command::Runs(command) => commands::runs::run(session, command).await,
        Command::Activity(args) => commands::access::activity::run(session, &args).await,
        Command::Doctor(args) => commands::doctor::run(session, &args).await,
        Command::Migrate(args) => commands::store::migrate::run(session, &args).await,
        Command::Backup(args) => commands::store::backup::run(session, &args).await,
        Command::Restore(args) => commands::store::restore::run(session, args).await,
        Command::Store(StoreCommand::Copy(args)) => commands::store::copy::run(session, &args).await,
        Command::Health => commands::health::run(session).await,
        // The caller runs the other commands: they need no runtime, or one of their own.
        _ => Ok(Exit::Done),
    }
}

/// The benches were once a command of this program, and users may still type it.
fn no_benches() -> Failure {
    Failure::usage("the benches are not in this program: `windlass-bench` has them, which is built from the source")
        .hint("in a clone of it: `cargo build --release -p windlass-cli -p windlass-bench`, then `target/release/windlass-bench --help`")
}

/// Runs a service on all cores.
fn serve(service: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(service);
    // Handlers that still block a thread have already been handed back or given up: do not wait for them.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// Ends a command with 130 on Ctrl-C. A thread of its own is needed, because a command may be blocked
/// reading stdin. Nothing needs cleaning up: stores survive a kill.
fn end_on_ctrl_c() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let signal = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?
    };
    std::thread::Builder::new().name("ctrl-c".to_owned()).spawn(move || {
        let mut signal = signal;
        if runtime.block_on(signal.recv()).is_some() {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
    })?;
    Ok(())
}
