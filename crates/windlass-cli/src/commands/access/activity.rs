//! `windlass activity`.

use clap::Args;

use crate::{
    failure::Exit,
    output::{table::Table, text},
    session::Session,
};

/// Arguments of `activity`.
#[derive(Debug, Args)]
pub struct ActivityArgs {
    /// How many calls to print, at most 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Only calls before the one with this number
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
}

/// Runs it.
pub async fn run(session: &Session, args: &ActivityArgs) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let activity = backend.activity(args.after, args.limit).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&activity)?;
        return Ok(Exit::Done);
    }
    if activity.calls.is_empty() {
        out.note("no calls that changed something; a server notes the calls of the API");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["ID", "WHEN", "WHO", "CALL", "ABOUT", "RESULT"]);
    for call in &activity.calls {
        table.row(vec![
            call.id.to_string(),
            text::time(out, call.at),
            text::cut(&call.who, 60),
            text::clean(&call.call),
            text::cut(&call.about, 80),
            text::clean(&call.result),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    if let Some(next) = activity.next {
        out.tip(format!("older ones: `windlass activity --after {next}`"));
    }
    Ok(Exit::Done)
}
