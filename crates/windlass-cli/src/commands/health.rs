//! `windlass health`: for probes and scripts. The exit code is the answer.

use crate::{backend::connect::Choice, failure::Exit, session::Session};

/// Asks the server whether it can do its work.
pub async fn run(session: &Session) -> anyhow::Result<Exit> {
    let settings = &session.settings;
    let choice = Choice::of(settings)?;
    let Some(server) = choice.server_to_watch(settings).await? else {
        return Err(choice.no_server(settings).into());
    };
    let health = server.health().await?;
    if session.out.is_json() {
        session.out.json(&health)?;
    } else if health.ok {
        session.out.line(format!("ok: windlass {}", health.version))?;
    } else {
        session.out.line(format!("not ready: {}", health.reason.as_deref().unwrap_or("no reason given")))?;
    }
    Ok(if health.ok { Exit::Done } else { Exit::Failed })
}
