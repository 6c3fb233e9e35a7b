//! `windlass sessions ls|end`.

use clap::Subcommand;

use crate::{
    failure::Exit,
    output::{table::Table, text},
    session::Session,
};

/// What to do with sessions of browsers.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List the newest sessions; without the scope admin those of your own token
    #[command(alias = "list")]
    Ls,
    /// End a session: at once on the server that is asked, on others within five seconds
    End {
        /// Its id
        id: String,
    },
}

/// Runs it.
pub async fn run(session: &Session, command: SessionsCommand) -> anyhow::Result<Exit> {
    match command {
        SessionsCommand::Ls => list(session).await,
        SessionsCommand::End { id } => end(session, &id).await,
    }
}

async fn list(session: &Session) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let sessions = backend.sessions().await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&sessions)?;
        return Ok(Exit::Done);
    }
    if sessions.sessions.is_empty() {
        out.note("no sessions; a browser starts one when it logs in with a token");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["ID", "TOKEN", "NAME", "SCOPES", "STARTED", "ENDS", "LAST SEEN"]);
    for one in &sessions.sessions {
        table.row(vec![
            one.id.to_string(),
            one.token.to_string(),
            one.name.as_ref().map_or_else(|| "-".to_owned(), |name| text::clean(name.as_str())),
            one.scopes.join(","),
            text::time(out, one.created_at),
            text::time(out, one.expires_at),
            text::time(out, one.last_seen_at),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    if sessions.more {
        out.note("there are older ones, which are not shown");
    }
    Ok(Exit::Done)
}

async fn end(session: &Session, id: &str) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let ended = backend.end_session(id).await?;
    backend.close().await?;
    if session.out.is_json() {
        session.out.json(&ended)?;
        return Ok(Exit::Done);
    }
    session.out.note(format!("session {} ended", ended.id));
    Ok(Exit::Done)
}
