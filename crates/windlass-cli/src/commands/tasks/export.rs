//! `windlass tasks export`.

use std::io;

use clap::{Args, ValueEnum};
use windlass_core::TaskId;
use windlass_server::{
    api::{ExportFormat, ExportRequest},
    operations::{EXPORT_DEFAULT, EXPORT_MAX},
};

use super::filter::FilterArgs;
use crate::{failure::Exit, session::Session};

/// Arguments of `tasks export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The form
    #[arg(long, value_enum)]
    format: Form,
    #[command(flatten)]
    filter: FilterArgs,
    /// Whole tasks with payload, output and attempts; only with --format ndjson
    #[arg(long)]
    payload: bool,
    /// At most this many; the last line says where the export was cut
    #[arg(long, default_value_t = EXPORT_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(EXPORT_MAX)))]
    limit: u32,
    /// Only tasks after this cursor: the one in the last line of an export that was cut
    #[arg(long, value_name = "CURSOR")]
    after: Option<TaskId>,
}

/// The form of an export, as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// A line of cells for each task
    Csv,
    /// A line of JSON for each task
    Ndjson,
}

/// Runs it. The lines go to stdout as they come.
pub async fn run(session: &Session, args: ExportArgs) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let format = match args.format {
        Form::Csv => ExportFormat::Csv,
        Form::Ndjson => ExportFormat::Ndjson,
    };
    let ExportArgs { filter, payload, limit, after, .. } = args;
    let request = ExportRequest { filter: filter.into(), format, payload, after, limit: Some(limit) };
    let mut pieces = backend.export(request).await?;
    // A piece may end within a line.
    let mut begun = Vec::new();
    while let Some(piece) = pieces.next().await? {
        begun.extend_from_slice(&piece);
        let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = begun.split_off(whole);
        match session.out.lines(&begun) {
            // The reader has seen enough, as with `| head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
        begun = rest;
    }
    backend.close().await?;
    Ok(Exit::Done)
}
