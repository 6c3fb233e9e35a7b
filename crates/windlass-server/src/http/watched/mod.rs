//! The routes of everyone who watches the store: one snapshot, a stream of them, their history.

mod events;

use std::sync::Arc;

use axum::{Router, extract::State, response::Response, routing::get};
use http::Uri;
use serde::Deserialize;

use super::{
    Server,
    answer::ok,
    query::{name, parsed, query},
    routes::Shared,
};
use crate::operations::Result;

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new()
        .route("/v1/snapshot", get(snapshot))
        .route("/v1/events", get(events::events))
        .route("/v1/series", get(series))
}

async fn snapshot(State(server): Shared) -> Response {
    ok(&server.operations.snapshot().await)
}

/// `?queue&from`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesQuery {
    queue: Option<String>,
    from: Option<String>,
}

async fn series(State(server): Shared, uri: Uri) -> Result<Response> {
    let SeriesQuery { queue, from } = query(&uri)?;
    let (queue, from) = (name("queue", queue.as_ref())?, parsed("from", from.as_ref())?);
    Ok(ok(&server.operations.series(queue, from).await))
}
