//! The routes of sessions: a browser logs in with a token, and gets a cookie.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{delete, get, post},
};
use http::{HeaderMap, HeaderValue, header};
use windlass_core::SessionRecord;

use super::{
    super::{
        Server,
        access::{caller_of, check_page},
        answer::ok,
        body,
        face::Shown,
        query::Param,
    },
    Nothing, Shared,
};
use crate::{
    access::{Caller, audit_session},
    api::{ErrorCode, ErrorDetail, LoggedOut, LoginRequest, SessionView},
    operations::Result,
};

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new()
        .route("/v1/login", post(login))
        .route("/v1/logout", post(logout))
        .route("/v1/sessions", get(list))
        .route("/v1/sessions/{id}", delete(end))
}

/// A page of another origin must not log a browser in either: its user would then work for another token
/// without a sign of it.
async fn login(State(server): Shared, request: Request) -> Result<Response> {
    check_page(&request)?;
    let before = match session_of(&server, request.headers()).await {
        // So many callers send guesses that this cookie is not looked up: it is no known session.
        Err(error) if error.code == ErrorCode::RateLimited => None,
        answer => answer?,
    };
    let LoginRequest { token } = body::small(&server, request).await?;
    if token.is_empty() {
        return Err(ErrorDetail::invalid("token must not be empty"));
    }
    let login = server.access.log_in(&token).await?;
    // A login never goes on with the session that the browser came with. So a text that another one put into
    // the browser's cookie stays worthless.
    if let Some(before) = before {
        server.access.end_session(&before.id).await?;
    }
    let cookie = server.face.cookie.set(&login.secret, login.record.valid_for().as_secs());
    let caller = Caller::of_session(login.record.clone());
    audit_session(&caller, "POST /v1/login", "/v1/login");
    with_cookie(ok(&SessionView::of(login.record, true)), cookie)
}

async fn logout(State(server): Shared, request: Request) -> Result<Response> {
    check_page(&request)?;
    let session = session_of(&server, request.headers()).await?;
    let Nothing {} = body::small(&server, request).await?;
    let mut ended = false;
    if let Some(session) = session {
        ended = server.access.end_session(&session.id).await?;
        audit_session(&Caller::of_session(session), "POST /v1/logout", "/v1/logout");
    }
    with_cookie(ok(&LoggedOut { ended }), server.face.cookie.clear())
}

async fn list(State(server): Shared, request: Request) -> Result<Response> {
    let caller = caller_of(&request)?;
    Ok(ok(&server.operations.sessions(&caller).await?))
}

async fn end(State(server): Shared, Param(id): Param, request: Request) -> Result<Response> {
    let caller = caller_of(&request)?;
    let Nothing {} = body::small(&server, request).await?;
    let ended = server.operations.end_session(&caller, &id).await?;
    server.access.forget_session(&ended.id);
    Ok(ok(&ended))
}

/// The session that a browser has now, if it is valid.
async fn session_of(server: &Server, headers: &HeaderMap) -> Result<Option<SessionRecord>> {
    let Shown::One(text) = server.face.cookie.read(headers) else { return Ok(None) };
    match server.access.session(text).await {
        Ok(session) => Ok(Some(session)),
        Err(error) if error.code == ErrorCode::Unauthorized => Ok(None),
        Err(error) => Err(error),
    }
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Result<Response> {
    let Some(cookie) = cookie else {
        return Err(ErrorDetail::new(ErrorCode::Unavailable, "the cookie could not be written"));
    };
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
