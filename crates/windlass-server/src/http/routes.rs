//! The routes, and the operation that each one calls.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::json as value;
use windlass::telemetry::CONTENT_TYPE;
use windlass_core::{TraceContext, WorkflowAction, trace::TRACEPARENT};

use super::{
    Routes, Server,
    access::{Gate, access, caller_of, is_grpc},
    answer::{json, ok, plain},
    body,
    face::Face,
    guard::guard,
    openapi::openapi,
    query::{Id, ListQuery, NamesQuery, NowQuery, PageQuery, Param, WaitQuery, WorkflowsQuery, query},
    watched,
};
use crate::{
    access::{Access, Auth, Effect},
    api::{
        BatchRequest, BulkResponse, Detail, EnqueueRequest, ErrorCode, ErrorDetail, PurgeRequest,
        WaitResponse,
    },
    dashboard, grpc,
    json::{BatchShape, parse},
    operations::{Result, VERSION, Vitals},
};

mod consumers;
mod export;
mod operators;
mod schedules;
mod sessions;
mod tokens;

pub(super) use export::EXPORTS_MAX;

pub(super) type Shared = State<Arc<Server>>;

/// Every route, behind the guard.
pub(super) fn router(server: &Arc<Server>) -> Router {
    let which = server.options.routes;
    let mut routes = api();
    if matches!(which, Routes::Whole | Routes::Pages) {
        routes = routes.merge(dashboard::router());
    }
    if which != Routes::Pages {
        routes = routes.merge(grpc::router(server));
    }
    let mut routes = routes.with_state(Arc::clone(server));
    if which != Routes::Pages {
        routes = routes.merge(monitor().with_state(server.operations.vitals()));
    }
    guarded(routes, which, (Arc::clone(&server.access), server.auth()), &server.face)
}

/// The monitor's routes, behind the guard.
pub(super) fn monitor_router(vitals: Vitals, access: Arc<Access>, auth: Auth, face: &Arc<Face>) -> Router {
    guarded(monitor().with_state(vitals), Routes::Monitor, (access, auth), face)
}

fn guarded(routes: Router, which: Routes, (rights, auth): (Arc<Access>, Auth), face: &Arc<Face>) -> Router {
    let gate = Arc::new(Gate { rights, auth, face: Arc::clone(face) });
    let shown = Arc::clone(face);
    let routes = routes
        .fallback(move |method: Method, headers: HeaderMap, uri: Uri| {
            std::future::ready(unknown_route(which, &shown, &method, &headers, &uri))
        })
        .layer(from_fn_with_state(gate, access))
        .layer(from_fn_with_state(Arc::clone(face), guard));
    face.under_prefix(routes)
}

/// The monitor's routes.
fn monitor() -> Router<Vitals> {
    Router::new().route("/healthz", get(health)).route("/readyz", get(ready)).route("/metrics", get(metrics))
}

fn api() -> Router<Arc<Server>> {
    Router::new()
        .route("/v1/tasks", get(list).post(enqueue))
        .route("/v1/tasks/cancel", post(bulk_cancel))
        .route("/v1/tasks/retry", post(bulk_retry))
        .route("/v1/tasks/remove", post(bulk_remove))
        .route("/v1/tasks/wait", post(wait_for_any))
        .route("/v1/tasks/{id}", get(show).delete(remove))
        .route("/v1/tasks/{id}/why", get(why))
        .route("/v1/tasks/{id}/wait", get(wait))
        .route("/v1/tasks/{id}/cancel", post(cancel))
        .route("/v1/tasks/{id}/retry", post(retry))
        .route("/v1/dead", get(dead))
        .route("/v1/queues", get(queues))
        .route("/v1/queues/{name}/why", get(queue_why))
        .route("/v1/queues/{name}/pause", post(pause))
        .route("/v1/queues/{name}/resume", post(resume))
        .route("/v1/queues/{name}/purge", post(purge))
        .route("/v1/jobs", get(jobs))
        .route("/v1/jobs/{name}", get(job).put(set_job).delete(remove_job))
        .route("/v1/workflows", get(workflows))
        .route("/v1/workflows/{name}", get(workflow))
        .route("/v1/workflows/{name}/steps", get(workflow_steps))
        .route("/v1/workflows/{name}/retry", post(retry_workflow))
        .route("/v1/workflows/{name}/skip", post(skip_workflow))
        .route("/v1/workflows/{name}/cancel", post(cancel_workflow))
        .merge(consumers::router())
        .merge(operators::router())
        .merge(export::router())
        .merge(schedules::router())
        .merge(sessions::router())
        .merge(tokens::router())
        .merge(watched::router())
        .route("/v1/workers", get(workers))
        .route("/v1/workers/{id}", put(set_worker))
        .route("/v1/info", get(info))
        .route("/v1/overview", get(overview))
        .route("/v1/audit", get(audit))
        .route("/v1/openapi.json", get(openapi))
}

async fn health(State(vitals): State<Vitals>) -> Response {
    ok(&vitals.health())
}

async fn ready(State(vitals): State<Vitals>) -> Response {
    let health = vitals.ready().await;
    json(if health.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &health)
}

async fn metrics(State(vitals): State<Vitals>) -> Result<Response> {
    let text = vitals.metrics_text().await?;
    Ok(plain(CONTENT_TYPE, text))
}

async fn enqueue(State(server): Shared, request: Request) -> Result<Response> {
    let operations = &server.operations;
    let max = body::enqueue_max_bytes(operations.store().rules().payload_max_bytes);
    let trace = trace_of(request.headers());
    let caller = caller_of(&request)?;
    let bytes = body::read(&server, request, max).await?;
    // Count the tasks before they are built: a body with a million small tasks is refused after one scan.
    if let Some(len) = parse::<BatchShape>(&bytes)?.len {
        operations.check_batch_len(len.0)?;
        let answer = operations.enqueue_batch_in(&caller, trace, parse::<BatchRequest>(&bytes)?).await?;
        return Ok(json(StatusCode::CREATED, &answer));
    }
    let answer = operations.enqueue_in(&caller, trace, parse::<EnqueueRequest>(&bytes)?).await?;
    Ok(json(if answer.existing { StatusCode::OK } else { StatusCode::CREATED }, &answer))
}

/// The trace context of a request. As the standard says, a header that is invalid or comes twice is ignored.
fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    match (given.next(), given.next()) {
        (Some(text), None) => TraceContext::from_stored(text.to_str().ok()),
        _ => None,
    }
}

async fn overview(State(server): Shared) -> Response {
    ok(&server.operations.overview())
}

async fn list(State(server): Shared, uri: Uri) -> Result<Response> {
    let query: ListQuery = query(&uri)?;
    let (filter, after, limit) = (query.filter()?, query.after()?, query.limit()?);
    match query.detail()? {
        Detail::Whole => Ok(ok(&server.operations.tasks(filter, after, limit).await?)),
        Detail::Summary => Ok(ok(&server.operations.summaries(filter, after, limit).await?)),
    }
}

async fn show(State(server): Shared, Id(id): Id) -> Result<Response> {
    Ok(ok(&server.operations.task(id).await?))
}

async fn why(State(server): Shared, Id(id): Id) -> Result<Response> {
    Ok(ok(&server.operations.why(id).await?))
}

async fn wait(State(server): Shared, Id(id): Id, uri: Uri) -> Result<Response> {
    let timeout_ms = query::<WaitQuery>(&uri)?.timeout_ms()?;
    long_poll(&server, server.operations.wait_for(id, timeout_ms)).await
}

async fn wait_for_any(State(server): Shared, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    long_poll(&server, server.operations.wait(request)).await
}

/// Runs a long poll. Refuses it if there are too many, and ends it when the server stops.
async fn long_poll(server: &Server, wait: impl Future<Output = Result<WaitResponse>>) -> Result<Response> {
    let _place = server.long_poll()?;
    tokio::select! {
        answer = wait => Ok(ok(&answer?)),
        () = server.closed() => Ok(ok(&WaitResponse::default())),
    }
}

async fn cancel(State(server): Shared, Id(id): Id, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(ok(&server.operations.cancel(id, request).await?))
}

async fn retry(State(server): Shared, Id(id): Id, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(ok(&server.operations.retry(id, request).await?))
}

async fn bulk_cancel(State(server): Shared, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(bulk(&server.operations.bulk_cancel(request).await?))
}

async fn bulk_retry(State(server): Shared, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(bulk(&server.operations.bulk_retry(request).await?))
}

async fn bulk_remove(State(server): Shared, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(bulk(&server.operations.bulk_remove(request).await?))
}

fn bulk(answer: &BulkResponse) -> Response {
    changed(answer, answer.dry_run)
}

/// The answer to a change that may have been a dry run.
fn changed(answer: &impl Serialize, was_dry_run: bool) -> Response {
    let mut response = ok(answer);
    if was_dry_run {
        response.extensions_mut().insert(Effect::Nothing);
    }
    response
}

async fn remove(State(server): Shared, Id(id): Id, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.remove(id).await?))
}

async fn dead(State(server): Shared, uri: Uri) -> Result<Response> {
    let query: ListQuery = query(&uri)?;
    if query.is_paged() {
        return Err(ErrorDetail::invalid("after, limit and detail are for /v1/tasks; groups are not paged"));
    }
    Ok(ok(&server.operations.dead_groups(query.filter()?).await?))
}

async fn queues(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.operations.queues().await?))
}

async fn queue_why(State(server): Shared, Param(queue): Param) -> Result<Response> {
    Ok(ok(&server.operations.queue_why(&queue).await?))
}

/// A body without any field.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

async fn pause(State(server): Shared, Param(queue): Param, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.pause(&queue).await?))
}

async fn resume(State(server): Shared, Param(queue): Param, request: Request) -> Result<Response> {
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.resume(&queue).await?))
}

async fn purge(State(server): Shared, Param(queue): Param, request: Request) -> Result<Response> {
    let request: PurgeRequest = body::small(&server, request).await?;
    let is_dry_run = request.dry_run;
    Ok(changed(&server.operations.purge(&queue, request).await?, is_dry_run))
}

async fn jobs(State(server): Shared, uri: Uri) -> Result<Response> {
    let query: NamesQuery = query(&uri)?;
    Ok(ok(&server.operations.jobs(query.after()?.as_ref(), query.limit()?).await?))
}

async fn job(State(server): Shared, Param(job): Param) -> Result<Response> {
    Ok(ok(&server.operations.job(&job).await?))
}

async fn set_job(State(server): Shared, Param(job): Param, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(ok(&server.operations.set_job(&job, request).await?))
}

async fn set_worker(State(server): Shared, Param(worker): Param, request: Request) -> Result<Response> {
    let request = body::small(&server, request).await?;
    Ok(ok(&server.operations.set_worker(&worker, request).await?))
}

async fn remove_job(
    State(server): Shared,
    Param(job): Param,
    uri: Uri,
    request: Request,
) -> Result<Response> {
    let now = query::<NowQuery>(&uri)?.now()?;
    let Nothing {} = body::small(&server, request).await?;
    Ok(ok(&server.operations.remove_job(&job, now).await?))
}

async fn workflows(State(server): Shared, uri: Uri) -> Result<Response> {
    let query: WorkflowsQuery = query(&uri)?;
    let blocked = query.blocked()?;
    let page = query.page();
    Ok(ok(&server.operations.workflows(blocked, page.after()?.as_ref(), page.limit()?).await?))
}

async fn workflow(State(server): Shared, Param(workflow): Param) -> Result<Response> {
    Ok(ok(&server.operations.workflow(&workflow).await?))
}

async fn workflow_steps(State(server): Shared, Param(workflow): Param, uri: Uri) -> Result<Response> {
    let query: PageQuery = query(&uri)?;
    Ok(ok(&server.operations.workflow_steps(&workflow, query.after_task()?, query.limit()?).await?))
}

async fn retry_workflow(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    change_workflow(&server, &name, request, WorkflowAction::Retry).await
}

async fn skip_workflow(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    change_workflow(&server, &name, request, WorkflowAction::Skip).await
}

async fn cancel_workflow(State(server): Shared, Param(name): Param, request: Request) -> Result<Response> {
    change_workflow(&server, &name, request, WorkflowAction::Cancel).await
}

async fn change_workflow(
    server: &Server,
    name: &str,
    request: Request,
    action: WorkflowAction,
) -> Result<Response> {
    let Nothing {} = body::small(server, request).await?;
    Ok(ok(&server.operations.change_workflow(name, action).await?))
}

async fn workers(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.operations.workers().await?))
}

async fn info(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.operations.info().await?))
}

async fn audit(State(server): Shared) -> Result<Response> {
    Ok(ok(&server.operations.audit().await?))
}

fn unknown_route(which: Routes, face: &Face, method: &Method, headers: &HeaderMap, uri: &Uri) -> Response {
    if is_grpc(headers) {
        return tonic::Status::unimplemented("there is no such service or method").into_http::<Body>();
    }
    let (dashboard, hint) = match which {
        Routes::WithoutPages => ("off", "start the server without --no-dashboard"),
        Routes::PagesElsewhere => ("at another address", "dashboard_listen says where"),
        Routes::Whole | Routes::Pages | Routes::Monitor => ("", ""),
    };
    let has_no_pages = !dashboard.is_empty();
    if has_no_pages && uri.path() == "/" && matches!(*method, Method::GET | Method::HEAD) {
        let api = face.prefix().link("/v1/openapi.json");
        return ok(&value!({"name": "windlass", "version": VERSION, "api": api, "dashboard": dashboard}));
    }
    if has_no_pages && dashboard::is_page(uri.path()) {
        let message = format!("there is no page here: the dashboard of this server is {dashboard}");
        return ErrorDetail::new(ErrorCode::NotFound, message)
            .hint(format!("{hint}; GET /v1/openapi.json describes the API"))
            .into_response();
    }
    let path: String = uri.path().chars().take(80).collect();
    ErrorDetail::new(ErrorCode::NotFound, format!("there is no route {path:?}"))
        .hint("the API is at /v1; GET /v1/openapi.json describes all of it")
        .into_response()
}
