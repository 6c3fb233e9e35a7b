//! `windlass health`: for probes and scripts; the exit code is the answer.

use crate::{
    backend::connect,
    config::table,
    failure::{Exit, Failure},
    session::Session,
};

/// Asks the server whether it can do its work.
pub async fn run(session: &Session) -> anyhow::Result<Exit> {
    let settings = &session.settings;
    let server = match connect::find_server(settings).await? {
        Some(server) => server,
        None if settings.is_given(&table::STORE) => {
            let message = format!("no server runs on {}", settings.text(&table::STORE));
            return Err(Failure::new(Exit::Unreachable, message).hint("start one with `windlass up`").into());
        }
        None => connect::usual(settings)?,
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
