//! Who may call what. One place decides for HTTP and for gRPC: each passes the head and the name of a call to
//! [`Access::admit`], and gets the caller or a refusal.
//!
//! ```text
//! head ─► identify (token, session, certificate, or any caller) ─► rate ─► may ─► call ─► audit
//! ```
//!
//! [`calls`] is the table of calls and the pure decision about them, [`token`] what a token looks like.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use http::{HeaderMap, header};
use tokio::time::Instant;
use tracing::info;
use windlass_core::{
    Name, Scope, Scopes, SessionRecord, Timestamp, TokenRecord, store::SharedStore, token::Bound,
};

use crate::{
    api::{ErrorCode, ErrorDetail},
    watch::at,
};

mod activity;
mod audit;
pub mod calls;
mod known;
mod rate;
mod session;
mod subject;
pub mod token;
mod used;

pub(crate) use activity::Effect;
pub use audit::{AUDIT, Answered, audit};
pub(crate) use audit::{audit_foreign_worker, audit_session};
pub use calls::{CALLS, Call, Mode, PAGES, Verdict, may};
pub use known::REMEMBERED;
pub(crate) use session::foreign_page;
pub use session::{Login, Site};
pub(crate) use subject::Subject;

/// Guessed token ids would cost the store a look-up each. At most this many ids that do not exist are looked
/// up each second; the server refuses the rest without asking the store.
const STRANGERS_PER_S: u32 = 100;

/// Whether callers must say who they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// A caller without a token may do everything. Only for an address that no other machine or user can
    /// reach.
    #[default]
    Open,
    /// A caller needs a token or a client certificate for every call, except the calls that are open to all.
    Tokens,
}

/// How a server decides about calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether callers must say who they are.
    pub auth: Auth,
    /// Whether calls may change anything.
    pub mode: Mode,
    /// Calls that one caller may make each second, and at once; 0 for no limit. A caller without a name is
    /// not counted.
    pub rate_per_s: u32,
    /// The scopes of a caller with a client certificate.
    pub certificate_scopes: Scopes,
}

/// A client certificate that the TLS handshake has verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The beginning of its SHA-256 fingerprint, in hex.
    pub fingerprint: String,
}

/// A bound without names: it restricts nothing.
static OPEN: Bound = Bound { queues: Vec::new(), kinds: Vec::new() };

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A caller without a token or certificate, on a server that asks for none.
    Anybody,
    /// The bearer of a token.
    Token {
        /// Its id.
        id: Name,
        /// Its name, if it has one.
        name: Option<Name>,
        /// Its scopes.
        scopes: Scopes,
        /// The queues and kinds that it is restricted to.
        bound: Bound,
    },
    /// A browser that logged in with a token. It may do what its token may.
    Session {
        /// Its id.
        id: Name,
        /// The id of its token.
        token: Name,
        /// The name of its token, if that has one.
        name: Option<Name>,
        /// The scopes of its token.
        scopes: Scopes,
        /// The queues and kinds that its token is restricted to.
        bound: Bound,
    },
    /// The holder of a client certificate.
    Certificate {
        /// The certificate.
        certificate: Certificate,
        /// Its scopes.
        scopes: Scopes,
    },
}

impl Caller {
    fn of_token(record: TokenRecord) -> Self {
        let TokenRecord { id, name, scopes, bound, .. } = record;
        Self::Token { id, name, scopes, bound }
    }

    pub(crate) fn of_session(record: SessionRecord) -> Self {
        let TokenRecord { id: token, name, scopes, bound, .. } = record.token;
        Self::Session { id: record.id, token, name, scopes, bound }
    }

    /// The id of the token that the caller shows, or logged in with.
    pub fn token(&self) -> Option<&Name> {
        match self {
            Self::Token { id, .. } => Some(id),
            Self::Session { token, .. } => Some(token),
            Self::Anybody | Self::Certificate { .. } => None,
        }
    }

    /// The id of the caller's session.
    pub fn session(&self) -> Option<&Name> {
        match self {
            Self::Session { id, .. } => Some(id),
            Self::Anybody | Self::Token { .. } | Self::Certificate { .. } => None,
        }
    }

    /// Whether the caller may do everything.
    pub fn is_admin(&self) -> bool {
        self.scopes().allow(Scope::Admin)
    }

    /// The queues and kinds that the caller is restricted to.
    pub fn bound(&self) -> &Bound {
        match self {
            Self::Token { bound, .. } | Self::Session { bound, .. } => bound,
            Self::Anybody | Self::Certificate { .. } => &OPEN,
        }
    }

    /// The owner that the store records for a worker which this caller registers. No part of it is a secret.
    pub fn owner(&self) -> Option<String> {
        match self {
            Self::Anybody => None,
            Self::Token { id, .. } | Self::Session { token: id, .. } => Some(format!("token {id}")),
            Self::Certificate { certificate, .. } => Some(format!("certificate {}", certificate.fingerprint)),
        }
    }

    /// The scopes of the caller.
    pub fn scopes(&self) -> Scopes {
        match self {
            Self::Anybody => Scopes::of([Scope::Admin]),
            Self::Token { scopes, .. } | Self::Session { scopes, .. } | Self::Certificate { scopes, .. } => {
                *scopes
            }
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anybody => f.write_str("anybody"),
            Self::Token { id, name: None, .. } => write!(f, "token {id}"),
            Self::Token { id, name: Some(name), .. } => write!(f, "token {id} ({name})"),
            Self::Session { id, token, name: None, .. } => write!(f, "session {id} of token {token}"),
            Self::Session { id, token, name: Some(name), .. } => {
                write!(f, "session {id} of token {token} ({name})")
            }
            Self::Certificate { certificate, .. } => write!(f, "certificate {}", certificate.fingerprint),
        }
    }
}

/// What the server knows of a call before it makes the call.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Whether callers at the address of the call must say who they are.
    pub auth: Auth,
    /// The head of the call.
    pub headers: &'a HeaderMap,
    /// Its path.
    pub path: &'a str,
    /// The client certificate of its connection.
    pub certificate: Option<&'a Certificate>,
    /// The text of its session's cookie. A gRPC call has none: the server does not look for it.
    pub session: Option<&'a str>,
}

/// Whether a caller needs neither a token nor a session.
fn needs_none(shown: Shown<'_>) -> bool {
    shown.auth == Auth::Open || shown.certificate.is_some()
}

/// Decides about calls to one server.
pub struct Access {
    store: Option<SharedStore>,
    options: Options,
    known: Mutex<known::Known<Box<TokenRecord>>>,
    sessions: Mutex<known::Known<SessionRecord>>,
    used: Mutex<used::Used>,
    rates: Mutex<rate::Rates>,
    strangers: Mutex<rate::Bucket>,
    strange_sessions: Mutex<rate::Bucket>,
    activity: activity::Queue,
    /// When all sessions were last listed. Locked while they are.
    sessions_listed_at: tokio::sync::Mutex<Option<Instant>>,
}

impl Access {
    /// Decides with the tokens of a store. Without a store the server accepts no token, but may accept
    /// certificates.
    pub fn new(store: Option<SharedStore>, options: Options) -> Self {
        Self {
            store,
            options,
            known: Mutex::default(),
            sessions: Mutex::default(),
            used: Mutex::default(),
            rates: Mutex::default(),
            strangers: Mutex::default(),
            strange_sessions: Mutex::default(),
            activity: activity::Queue::default(),
            sessions_listed_at: tokio::sync::Mutex::default(),
        }
    }

    /// Admits a call, or says why not. For a call that is open to all, the token is not checked: a probe
    /// works with any token.
    ///
    /// # Errors
    /// `unauthorized` (401), `forbidden` (403), `rate_limited` (429), or the store's error if it cannot look
    /// up the token.
    pub async fn admit(&self, call: &Call, shown: Shown<'_>) -> Result<Caller, ErrorDetail> {
        let Some(scope) = call.scope else { return Ok(Caller::Anybody) };
        let caller = self.identify(call, shown).await?;
        self.count(&caller)?;
        if let Some(token) = caller.token() {
            lock(&self.used).note(token, at(SystemTime::now()));
        }
        match may(caller.scopes(), call, self.options.mode) {
            Verdict::Allowed => Ok(caller),
            Verdict::MissingScope => {
                // Audit refusals too: an operator needs to see what was tried.
                audit(&caller, call, (shown.path, ""), Answered::denied(call));
                Err(missing_scope(&caller, scope))
            }
            Verdict::ReadOnly => Err(ErrorDetail::new(ErrorCode::Forbidden, "this server is read-only")
                .hint("ask a server that runs without read_only")),
        }
    }

    /// Whether the caller of a call that goes on may still make it. This does not count as a further call.
    ///
    /// # Errors
    /// `rate_limited` (429) or the store's error, if that cannot be told now.
    pub(crate) async fn still_admits(&self, call: &Call, shown: Shown<'_>) -> Result<bool, ErrorDetail> {
        match self.identify(call, shown).await {
            Ok(caller) => Ok(may(caller.scopes(), call, self.options.mode) == Verdict::Allowed),
            Err(error) if error.code == ErrorCode::Unauthorized => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// When a token was last used for a call to this process, if it was.
    pub fn last_used(&self, token: &Name) -> Option<Timestamp> {
        lock(&self.used).last(token)
    }

    /// Forgets the cached answer for a token that was revoked here, so that it and its sessions stop at once.
    pub fn forget(&self, id: &Name) {
        let now = Instant::now();
        lock(&self.known).forget(id, now);
        lock(&self.used).forget(id);
        lock(&self.sessions).forget_if(now, |session| session.token.id == *id);
    }

    async fn identify(&self, call: &Call, shown: Shown<'_>) -> Result<Caller, ErrorDetail> {
        let has_token = shown.headers.contains_key(header::AUTHORIZATION);
        // A browser sends its cookie by itself, so a token that the caller shows on purpose wins over it.
        let session = shown.session.filter(|_| !has_token && !call.is_grpc());
        if let Some(text) = session {
            match self.session(text).await.map(Caller::of_session) {
                // A cookie of an old session, or of another server on this machine, must not shut out a caller
                // who needs none.
                Err(error) if error.code == ErrorCode::Unauthorized && needs_none(shown) => {}
                answer => return answer,
            }
        }
        let mut given = shown.headers.get_all(header::AUTHORIZATION).iter();
        match (given.next(), given.next(), shown.certificate) {
            (Some(value), None, _) => {
                let text = value.to_str().ok().and_then(token::bearer);
                let text = text
                    .ok_or_else(|| unauthorized("the Authorization header is not \"Bearer\" with a token"))?;
                self.verify(text).await.map(Caller::of_token)
            }
            (Some(_), Some(_), _) => Err(unauthorized("there is more than one Authorization header")),
            (None, _, Some(certificate)) => {
                let scopes = self.options.certificate_scopes;
                Ok(Caller::Certificate { certificate: certificate.clone(), scopes })
            }
            (None, _, None) if shown.auth == Auth::Open => Ok(Caller::Anybody),
            (None, _, None) => Err(unauthorized("this server requires a token")),
        }
    }

    /// The record of the token in a text, if that token exists and has not expired.
    async fn verify(&self, text: &str) -> Result<TokenRecord, ErrorDetail> {
        let wrong = || unauthorized("the token is not known here, or was revoked");
        let id = token::id_of(text).ok_or_else(wrong)?;
        let now = Instant::now();
        let remembered = lock(&self.known).get(&id, now);
        let heard = match remembered {
            Some(heard) => heard,
            None => self.look_up(id, now).await?,
        };
        let Some(record) = heard else { return Err(wrong()) };
        if !token::is_of(text, record.hash) {
            return Err(wrong());
        }
        if record.is_expired {
            let message = format!("the token {} has expired", record.id);
            return Err(unauthorized(message));
        }
        Ok(*record)
    }

    async fn look_up(&self, id: Name, now: Instant) -> Result<Option<Box<TokenRecord>>, ErrorDetail> {
        let Some(store) = &self.store else {
            return Err(unauthorized(
                "this process has no store and so no tokens; show a client certificate",
            ));
        };
        // Count the look-up as one of an unknown token first; take it back if the token exists.
        lock(&self.strangers).take(now, STRANGERS_PER_S).map_err(|_| {
            ErrorDetail::new(ErrorCode::RateLimited, "too many unknown tokens at once")
                .hint("try again shortly")
        })?;
        let heard = store.tokens().find(&id).await?.map(Box::new);
        if heard.is_some() {
            lock(&self.strangers).give_back();
        }
        lock(&self.known).put(id, heard.clone(), now, REMEMBERED);
        Ok(heard)
    }

    fn count(&self, caller: &Caller) -> Result<(), ErrorDetail> {
        let key = match caller {
            // The sessions of a token have its limit together.
            Caller::Token { id, .. } | Caller::Session { token: id, .. } => id.as_str(),
            Caller::Certificate { certificate, .. } => &certificate.fingerprint,
            Caller::Anybody => return Ok(()),
        };
        let rate = self.options.rate_per_s;
        if rate == 0 || lock(&self.rates).take(key, Instant::now(), rate) {
            return Ok(());
        }
        let message = format!("{caller} makes more than {rate} calls each second");
        Err(ErrorDetail::new(ErrorCode::RateLimited, message)
            .hint("wait a second; put several tasks into one call; or raise rate_limit on the server"))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Refuses a task that the bound of the caller's token does not include.
///
/// # Errors
/// `forbidden` (403).
pub(crate) fn may_have(caller: &Caller, queue: &Name, kind: &Name) -> Result<(), ErrorDetail> {
    let bound = caller.bound();
    if !bound.has_queue(queue) {
        return Err(out_of_bounds(caller, &format!("queue {queue}")));
    }
    if !bound.has_kind(kind) {
        return Err(out_of_bounds(caller, &format!("kind {kind}")));
    }
    Ok(())
}

/// The refusal of something outside the bound of a token.
pub(crate) fn out_of_bounds(caller: &Caller, what: &str) -> ErrorDetail {
    let bound = caller.bound();
    info!(target: AUDIT, who = %caller, call = "leave its bounds", about = what, outcome = "denied", "audit");
    ErrorDetail::new(ErrorCode::Forbidden, format!("{caller} is for {bound}, not for {what}")).hint(
        "`windlass token create --scope work` takes --queue and --kind more than once; without them a token is valid for all",
    )
}

fn unauthorized(message: impl Into<String>) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::Unauthorized, message).hint(
        "show one with WINDLASS_TOKEN or --token-file, over HTTP with `Authorization: Bearer TOKEN`; a caller of scope admin makes \
         it with `windlass token create --scope read`, and the first is made while the server does not run",
    )
}

fn missing_scope(caller: &Caller, scope: Scope) -> ErrorDetail {
    let held = caller.scopes();
    let held = if held.is_empty() { "none".to_owned() } else { held.to_string() };
    ErrorDetail::new(ErrorCode::Forbidden, format!("this needs the scope {scope}; {caller} has {held}"))
        .hint(format!("use a token made with `windlass token create --scope {scope}`"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
