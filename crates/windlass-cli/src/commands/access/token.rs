//! `windlass token create|ls|revoke`.

use clap::Subcommand;
use windlass_core::{Name, Scopes, token::Bound};
use windlass_server::api::{ErrorCode, ErrorDetail, TokenRequest, TokenView};

use crate::{
    duration,
    failure::{Exit, Failure},
    output::{Colour, table::Table, text},
    session::Session,
};

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it; it cannot be shown again
    Create {
        /// What it allows: enqueue, work, read, admin (includes the others); several with commas
        #[arg(long, value_name = "SCOPES")]
        scope: String,
        /// Its name; two tokens may share one while the new one replaces the old one
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Allow only this queue, for the scopes enqueue and work; may be repeated; without it all queues
        #[arg(long = "queue", value_name = "QUEUE")]
        queues: Vec<String>,
        /// Allow only this kind, for the scopes enqueue and work; may be repeated; without it all kinds
        #[arg(long = "kind", value_name = "KIND")]
        kinds: Vec<String>,
        /// How long it is valid, such as 90d; without it for ever
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
    },
    /// List tokens, without their secrets
    Ls,
    /// Revoke a token: at once on the server that is asked, on others within five seconds
    Revoke {
        /// Its id, or its name if no other token has it
        id: String,
    },
}

/// Runs it.
pub async fn run(session: &Session, command: TokenCommand) -> anyhow::Result<Exit> {
    match command {
        TokenCommand::Create { scope, name, queues, kinds, expires } => {
            create(session, &scope, name, (&queues, &kinds), expires).await
        }
        TokenCommand::Ls => list(session).await,
        TokenCommand::Revoke { id } => revoke(session, &id).await,
    }
}

async fn create(
    session: &Session,
    scope: &str,
    name: Option<String>,
    (queues, kinds): (&[String], &[String]),
    expires: Option<String>,
) -> anyhow::Result<Exit> {
    let wrong = |error: windlass_core::Error| Failure::usage(error.to_string());
    let scopes: Scopes = scope.parse().map_err(wrong)?;
    let name = name.map(|name| Name::new("name", name)).transpose().map_err(wrong)?;
    let names = |what: &str, texts: &[String]| -> windlass_core::Result<Vec<Name>> {
        texts.iter().map(|text| Name::new(what, text)).collect()
    };
    let queues = names("queue", queues).map_err(wrong)?;
    let kinds = names("kind", kinds).map_err(wrong)?;
    let expires = expires.map(|text| duration::parse(&text)).transpose();
    let expires = expires.map_err(|problem| Failure::usage(format!("--expires: {problem}")))?;
    let request = TokenRequest {
        scopes: scopes.iter().map(|scope| scope.to_string()).collect(),
        name,
        queues,
        kinds,
        expires_in_ms: expires.map(|time| time.as_millis() as u64),
    };
    let backend = session.backend_to_change().await?;
    let created = backend.create_token(request).await.map_err(first_token)?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&created)?;
        return Ok(Exit::Done);
    }
    // Only data goes to stdout, so that the token can be written straight into a file.
    out.line(&created.token)?;
    out.note(format!(
        "{} may {}{}; keep it, it is not shown again. `windlass token revoke {}` ends it",
        shown(&created.view),
        scopes,
        match bound(&created.view) {
            bound if bound.is_empty() => bound,
            bound => format!(" for {bound}"),
        },
        created.view.id
    ));
    Ok(Exit::Done)
}

fn shown(token: &TokenView) -> String {
    match &token.name {
        Some(name) => format!("token {} ({})", token.id, text::clean(name.as_str())),
        None => format!("token {}", token.id),
    }
}

/// The queues and kinds that a token is limited to.
fn bound(token: &TokenView) -> String {
    let bound = Bound { queues: token.queues.clone(), kinds: token.kinds.clone() };
    text::clean(&bound.to_string())
}

/// The error of a server that requires tokens and has none yet. Such a server cannot create the first
/// token.
fn first_token(error: ErrorDetail) -> Failure {
    let is_unauthorized = error.code == ErrorCode::Unauthorized;
    let failure = Failure::from(error);
    if !is_unauthorized {
        return failure;
    }
    failure.hint(
        "show a token of scope admin with --token-file or WINDLASS_TOKEN; if there is none yet, stop the server, run this again \
         and start the server: the first token is made while it does not run (on PostgreSQL also beside it, with --store)",
    )
}

async fn list(session: &Session) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let tokens = backend.tokens().await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&tokens)?;
        return Ok(Exit::Done);
    }
    if tokens.tokens.is_empty() {
        out.note("no tokens; `windlass token create --scope read` makes one");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["ID", "NAME", "SCOPES", "FOR", "CREATED", "EXPIRES", "LAST USED"]);
    for token in &tokens.tokens {
        let expires = match (token.expired, token.expires_at) {
            (true, _) => out.paint(Colour::Yellow, "expired"),
            (false, Some(at)) => text::time(out, at),
            (false, None) => "never".to_owned(),
        };
        table.row(vec![
            token.id.to_string(),
            token.name.as_ref().map_or_else(|| "-".to_owned(), |name| text::clean(name.as_str())),
            token.scopes.join(","),
            match bound(token) {
                bound if bound.is_empty() => "all".to_owned(),
                bound => bound,
            },
            text::time(out, token.created_at),
            expires,
            token.last_used_at.map_or_else(|| "-".to_owned(), |at| text::time(out, at)),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    Ok(Exit::Done)
}

async fn revoke(session: &Session, id: &str) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let revoked = backend.revoke_token(id).await?;
    backend.close().await?;
    if session.out.is_json() {
        session.out.json(&revoked)?;
        return Ok(Exit::Done);
    }
    session.out.note(format!("token {} revoked", revoked.id));
    Ok(Exit::Done)
}
