//! The routes of recurring tasks.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
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
use crate::{api::ScheduleRequest, json::parse, operations::Result};

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new()
        .route("/v1/schedules", get(list))
        .route("/v1/schedules/{name}", get(show).put(set).delete(remove))
        .route("/v1/schedules/{name}/pause", post(pause))
        .route("/v1/schedules/{name}/resume", post(resume))
        .route("/v1/schedules/{name}/run", post(run))
}

async fn list(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.operations.schedules().await?))
}

async fn show(State(server): Shared, Param(name): Param) -> Result<Response> {
    Ok(ok(&server.operations.schedule(&name).await?))
}

async fn set(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    let max = body::enqueue_max_bytes(server.operations.store().rules().payload_max_bytes);
    let bytes = body::read(&server, request, max).await?;
    Ok(ok(&server.operations.set_schedule(&name, parse::<ScheduleRequest>(&bytes)?).await?))
}

async fn remove(State(server): Shared, Param(name): Param) -> Result<Response> {
    Ok(ok(&server.operations.remove_schedule(&name).await?))
}

async fn pause(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.pause_schedule(&name).await?))
}

async fn resume(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.resume_schedule(&name).await?))
}

async fn run(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    Ok(json(StatusCode::CREATED, &server.operations.run_schedule(&name).await?))
}
