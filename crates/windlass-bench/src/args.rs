//! The command line as it is typed.

use std::path::PathBuf;

use clap::{Args, Parser};

use crate::{
    figures::Which,
    place::{Place, Wanted},
};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "windlass-bench",
    version,
    about = "Measure this machine: speed, latency, memory",
    disable_help_subcommand = true,
    propagate_version = true
)]
pub(crate) struct Cli {
    /// Where stores are made: postgres for a private server, postgres://user@host/database for another;
    /// without it in files
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<Wanted>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) which: Which,
}

/// What every bench takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Folder for the bench's own stores; without it a temporary one on the disk to be measured.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Rounds of engine and ceiling; medians are printed.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Whether admission control acts: `off` to see what it costs.
    #[arg(long, value_enum, default_value_t = AdmissionArg::On)]
    pub(crate) admission: AdmissionArg,
    /// Where stores are made; from `--store`.
    #[arg(skip)]
    pub(crate) place: Place,
}

/// Whether admission control acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AdmissionArg {
    On,
    Off,
}
