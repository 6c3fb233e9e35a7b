//! The dashboard: pages for people, drawn by the server from the same operations as the API.
//!
//! ```text
//! access ─► show ─► recent (one drawing for all viewers) ─► pages/* ─► layout ─► answer
//! ```
//!
//! A page asks for itself again every two seconds and gets only its content, so what a viewer sees first and
//! what the viewer sees later is drawn by the same function. Buttons send the calls of the API: a page can do
//! nothing that the API cannot.

use std::sync::Arc;

use axum::{
    Router,
    extract::{FromRequestParts as _, Request, State},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::HeaderMap;

use crate::{
    access::{Auth, Caller},
    api::{ErrorCode, ErrorDetail},
    http::{Param, Server},
    operations::Result,
};

mod answer;
mod assets;
mod chart;
mod filters;
mod flow;
mod history;
mod layout;
mod pages;
mod parts;
mod recent;
mod viewer;

pub(crate) use answer::refused;
pub(crate) use pages::{PAGES, Page};
pub(crate) use recent::Recent;
use viewer::{Ask, Viewer};

/// The header with which a page asks for its content alone.
const FRAGMENT: &str = "windlass-fragment";
/// The header with which a page asks for a new drawing, because its viewer has just changed something.
const FRESH: &str = "windlass-fresh";

/// The routes of all pages and of what they load.
pub(crate) fn router() -> Router<Arc<Server>> {
    let router = Router::new().route("/login", get(login)).route("/assets/{file}", get(assets::asset));
    PAGES.iter().fold(router, |router, page| {
        router.route(page.route(), get(move |server, request| show(*page, server, request)))
    })
}

/// Whether a path is one of a page, or of what pages load.
pub(crate) fn is_page(path: &str) -> bool {
    let is_at = |route: &str| {
        let (mut asked, mut known) = (path.split('/'), route.split('/'));
        loop {
            match (asked.next(), known.next()) {
                (None, None) => return true,
                (Some(part), Some(name)) if part == name || name.starts_with('{') && !part.is_empty() => {}
                _ => return false,
            }
        }
    };
    PAGES.iter().map(|page| page.route()).chain(["/login", "/assets/{file}"]).any(is_at)
}

/// Draws a page, whole or only its content.
async fn show(page: Page, State(server): State<Arc<Server>>, request: Request) -> Response {
    let ask = match ask(&server, request).await {
        Ok(ask) => ask,
        Err(error) => return error.into_response(),
    };
    // Viewers with the same rights share a drawing, unless it shows what only one of them may see.
    let viewers = if page == Page::Access { ask.viewer.identity() } else { ask.viewer.rights() };
    let drawn = server.recent.drawn(&ask, &viewers, || page.draw(&ask)).await;
    answer::page(&ask, Some(page), drawn)
}

/// The page on which a token is exchanged for a session.
async fn login(State(server): State<Arc<Server>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let is_open = server.auth() == Auth::Open;
    answer::login(&headers, is_open, server.face.prefix())
}

async fn ask(server: &Arc<Server>, request: Request) -> Result<Ask> {
    let caller = request.extensions().get::<Arc<Caller>>().cloned();
    let caller = caller
        .ok_or_else(|| ErrorDetail::new(ErrorCode::Forbidden, "this page has passed no access check"))?;
    let (mut parts, _) = request.into_parts();
    // Pages without a name in their path have no parameter.
    let name = Param::from_request_parts(&mut parts, &()).await.ok().map(|Param(name)| name);
    let headers: HeaderMap = parts.headers;
    let viewer = Viewer::new(caller, server.mode(), server.auth(), server.face.prefix().clone());
    Ok(Ask { server: Arc::clone(server), viewer, uri: parts.uri, name, headers })
}
