//! The routes of consumers of RabbitMQ.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::get,
};

use super::{
    super::{Server, access::caller_of, answer::ok, body},
    Shared,
};
use crate::operations::Result;

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new().route("/v1/consumers", get(list).post(report))
}

async fn list(State(server): Shared) -> Response {
    ok(&server.operations.consumers())
}

async fn report(State(server): Shared, request: Request) -> Result<Response> {
    let owner = caller_of(&request)?.owner();
    let report = body::small(&server, request).await?;
    Ok(ok(&server.operations.report_consumers(owner, report)?))
}
