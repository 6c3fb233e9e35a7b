//! Pages as HTTP answers: whole, as a fragment, or "not changed".

use std::sync::Arc;

use axum::response::{Html, IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    FRAGMENT, Page, layout, pages,
    recent::Drawn,
    viewer::{Ask, encoded},
};
use crate::{
    api::{ErrorCode, ErrorDetail},
    operations::Result,
    public_url::Prefix,
};

/// Pages load their own script, style and content from this server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
/// The header that names the title of a page whose content is sent alone.
const TITLE: &str = "windlass-title";

/// The answer to a request for a page.
pub(super) fn page(ask: &Ask, page: Option<Page>, drawn: Result<Arc<Drawn>>) -> Response {
    let (status, drawn) = match drawn {
        Ok(drawn) => (StatusCode::OK, drawn),
        Err(error) => {
            let status = error.clone().into_response().status();
            (status, Arc::new(Drawn::from(pages::error(&ask.viewer, &error))))
        }
    };
    if !ask.wants_fragment() {
        return with_policy(status, layout::whole(ask, page, &drawn).into_string());
    }
    let is_known = ask.headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag == drawn.tag.as_str());
    let mut response = if is_known && status == StatusCode::OK {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        with_policy(status, drawn.body.clone())
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&drawn.tag) {
        headers.insert(header::ETAG, tag);
    }
    if let Ok(title) = HeaderValue::from_str(&encoded(&drawn.title)) {
        headers.insert(TITLE, title);
    }
    response
}

/// The page on which a token is exchanged for a session.
pub(super) fn login(headers: &HeaderMap, is_open: bool, links: &Prefix) -> Response {
    if is_open {
        return see_other(&links.link("/"));
    }
    // A fragment is asked for by a page whose session has ended.
    if headers.contains_key(FRAGMENT) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    with_policy(StatusCode::OK, layout::login(links).into_string())
}

/// The refusal of a page: a viewer whom the server does not know is led to the login.
pub(crate) fn refused(error: ErrorDetail, headers: &HeaderMap, address: &str, links: &Prefix) -> Response {
    if headers.contains_key(FRAGMENT) {
        return error.into_response();
    }
    if error.code == ErrorCode::Unauthorized {
        return see_other(&links.link(&format!("/login?next={}", encoded(address))));
    }
    let status = error.clone().into_response().status();
    with_policy(status, layout::bare(links, "Refused", &pages::error_text(&error)).into_string())
}

fn see_other(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

fn with_policy(status: StatusCode, html: String) -> Response {
    let mut response = (status, Html(html)).into_response();
    let policy = HeaderValue::from_static(POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}
