//! The routes of bulk runs, and of the last calls that changed something.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
};
use http::{StatusCode, Uri};

use super::{
    super::{
        Server,
        access::caller_of,
        answer::{json, ok},
        body,
        query::{PageQuery, Param, query},
    },
    Nothing, Shared,
};
use crate::{
    access::Effect,
    api::{ErrorDetail, RunRequest},
    operations::Result,
};

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new()
        .route("/v1/runs", get(list).post(start))
        .route("/v1/runs/{id}", get(show))
        .route("/v1/runs/{id}/stop", post(stop))
        .route("/v1/activity", get(activity))
}

async fn start(State(server): Shared, request: Request) -> Result<Response> {
    let caller = caller_of(&request)?;
    let request: RunRequest = body::small(&server, request).await?;
    if request.dry_run {
        let mut answer = ok(&server.operations.preview_run(request).await?);
        answer.extensions_mut().insert(Effect::Nothing);
        return Ok(answer);
    }
    let run = server.operations.start_run(&caller, request).await?;
    let mut answer = json(StatusCode::CREATED, &run);
    answer.extensions_mut().insert(Effect::About(format!("/v1/runs/{}", run.id)));
    Ok(answer)
}

async fn list(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.operations.runs().await?))
}

async fn show(State(server): Shared, Param(id): Param) -> Result<Response> {
    Ok(ok(&server.operations.run(number(&id)?).await?))
}

async fn stop(State(server): Shared, Param(id): Param, request: Request) -> Result<Response> {
    let caller = caller_of(&request)?;
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.stop_run(&caller, number(&id)?).await?))
}

async fn activity(State(server): Shared, uri: Uri) -> Result<Response> {
    let query: PageQuery = query(&uri)?;
    let (after, limit) = (query.after_number()?, query.limit()?);
    // A caller sees what was done through this server a moment ago.
    server.access.write_activity().await;
    Ok(ok(&server.operations.activity(after, limit).await?))
}

/// The number of a run.
fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        ErrorDetail::invalid(format!("a run has a number, not {shown:?}"))
    })
}
