//! The command line as it is typed.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{
    commands::{
        access::{activity, sessions, token},
        completions, config, consume, doctor, enqueue, jobs, queues, runs, schedules,
        store::{backup, copy, migrate, restore},
        tasks, up, worker, workers, workflows,
    },
    config::{Setting, setting::Raw, table},
    version,
};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "windlass",
    version = version::text(),
    about = "Windlass hauls work: a durable task queue and worker in one program",
    after_help = "Start with `windlass up`, then `windlass enqueue echo --payload '{\"hello\":\"world\"}' --wait`.\n\
                  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 unreachable (try again), \
                  6 a task that was waited for ended dead or cancelled, 130 Ctrl-C.",
    disable_help_subcommand = true,
    propagate_version = true
)]
pub struct Cli {
    /// Options that every command has.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the command line of this process.
    ///
    /// # Errors
    /// What clap says of it, help and version included.
    pub fn read() -> Result<(Self, clap::ArgMatches), clap::Error> {
        let mut command = with_negative_numbers(Self::command());
        let read = command.try_get_matches_from_mut(std::env::args_os()).and_then(|typed| {
            match Self::from_arg_matches(&typed) {
                Ok(cli) => Ok((cli, typed)),
                Err(error) => Err(error.format(&mut command)),
            }
        });
        read.map_err(without_wrong_tip)
    }
}

/// The same commands, which read `-1` behind an option as a value, so that the option's own check says
/// what is wrong with it. Without this, clap takes `-1` for a flag.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let is_option = !arg.is_positional() && arg.get_action().takes_values();
            arg.allow_negative_numbers(is_option)
        })
        .mut_subcommands(with_negative_numbers)
}

/// Removes clap's advice to write `-- -1`. clap gives it for every command with a free argument, also
/// where it cannot help.
fn without_wrong_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested)
        && tips.iter().any(|tip| tip.to_string().contains("as a value, use '"))
    {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Options that every command has.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Talk to this server
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Show the server the token in this file, in place of WINDLASS_TOKEN
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub token_file: Option<String>,
    /// Trust these certificate authorities for a server with https://, a file in PEM
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub ca: Option<String>,
    /// Use this store, such as sqlite:windlass.db or postgres://user@host/database
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<String>,
    /// The schema of a PostgreSQL store
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub schema: Option<String>,
    /// Read settings from this file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON, with times in UTC
    #[arg(long, global = true)]
    pub json: bool,
    /// Print data and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// How much to log: off, error, warn, info, debug, trace
    #[arg(long, global = true, value_name = "LEVEL", hide_short_help = true)]
    pub log_level: Option<String>,
    /// Form of log lines: text or json
    #[arg(long, global = true, value_name = "FORM", hide_short_help = true)]
    pub log_format: Option<String>,
}

impl Global {
    /// The settings among these options.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        given([
            (&table::SERVER, self.server.as_ref()),
            (&table::TOKEN_FILE, self.token_file.as_ref()),
            (&table::CA, self.ca.as_ref()),
            (&table::STORE, self.store.as_ref()),
            (&table::SCHEMA, self.schema.as_ref()),
            (&table::LOG_LEVEL, self.log_level.as_ref()),
            (&table::LOG_FORMAT, self.log_format.as_ref()),
        ])
    }
}

/// The settings for which a flag was given.
pub fn given<'a>(
    flags: impl IntoIterator<Item = (&'static Setting, Option<&'a String>)>,
) -> Vec<(&'static Setting, Raw)> {
    flags.into_iter().filter_map(|(setting, text)| Some((setting, Raw::Text(text?.clone())))).collect()
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything in one process: store, worker, HTTP API
    Up(up::UpArgs),
    /// Run a worker on a store, or on a server (--server), without the HTTP API
    Worker(worker::WorkerArgs),
    /// Consume from RabbitMQ: into the store, or to HTTP targets
    Consume(consume::ConsumeArgs),
    /// Put tasks into the store
    Enqueue(Box<enqueue::EnqueueArgs>),
    /// Look at tasks, cancel, retry and await them
    #[command(subcommand)]
    Tasks(tasks::TasksCommand),
    /// Look at queues, pause and resume them
    #[command(subcommand)]
    Queues(queues::QueuesCommand),
    /// Look at jobs, limit, pause, cancel and remove them
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Look at workflows, retry, skip and cancel them
    #[command(subcommand)]
    Workflows(workflows::WorkflowsCommand),
    /// Recurring tasks: make, look at, pause, resume, run and remove schedules
    #[command(subcommand)]
    Schedules(schedules::SchedulesCommand),
    /// Look at workers
    #[command(subcommand)]
    Workers(workers::WorkersCommand),
    /// Tokens of the API: make, list and revoke them
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Sessions of browsers: list and end them
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Bulk runs: changes of many tasks, spread over a time; list, show and stop them
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// The last calls that changed something: who, what and when
    Activity(activity::ActivityArgs),
    /// Check the store, the server and this machine
    Doctor(doctor::DoctorArgs),
    /// Bring the store's schema to this version
    Migrate(migrate::MigrateArgs),
    /// Write a consistent copy of the store, also while it runs
    Backup(backup::BackupArgs),
    /// Put a copy in the place of the store
    Restore(restore::RestoreArgs),
    /// Move a whole store to a server
    #[command(subcommand)]
    Store(copy::StoreCommand),
    /// Write or check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Ask the server whether it can do its work
    Health,
    /// Watch queues, jobs and workers in this terminal
    Top(crate::top::TopArgs),
    /// Watch many jobs share one worker: real requests to slow sites on this machine
    Demo(crate::demo::DemoArgs),
    /// The sites of the demo; started by it
    #[command(hide = true)]
    DemoSite(crate::demo::SiteArgs),
    /// Says where the benches are: not in this program
    #[command(hide = true, disable_help_flag = true)]
    Bench {
        /// Arguments for the other program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<OsString>,
    },
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}
