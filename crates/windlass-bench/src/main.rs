//! The windlass-bench program. It prints ratios within one run, because absolute times differ between
//! machines.
//!
//! Each bench prints one JSON object (or list) with `--json`. A ceiling is a bare loop over the statements in
//! `bench/ceiling/`, on the same table and indexes, alternating with the engine.
//!
//! Reading order: `args` (the arguments), `place` and `rig` (a store of the bench's own and a worker on
//! it), `ceiling` (the bare loops), `figures` (each bench), `report` (every figure beside its bar).

mod args;
mod ceiling;
mod figures;
mod place;
mod program;
mod report;
mod rig;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;

fn main() -> ExitCode {
    match figures::run(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // All causes in one line: a cause on a line of its own looks like a second error.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
