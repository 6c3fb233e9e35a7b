//! The routes of tokens.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{delete, get},
};
use http::StatusCode;

use super::{
    super::{
        Server,
        answer::{json, ok},
        body,
        query::Param,
    },
    Nothing, Shared,
};
use crate::operations::Result;

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new().route("/v1/tokens", get(list).post(create)).route("/v1/tokens/{id}", delete(revoke))
}

async fn list(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.tokens().await?))
}

async fn create(State(server): Shared, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(json(StatusCode::CREATED, &server.operations.create_token(request).await?))
}

async fn revoke(State(server): Shared, Param(id): Param, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    let revoked = server.operations.revoke_token(&id).await?;
    server.access.forget(&revoked.id);
    Ok(ok(&revoked))
}
