//! The standard health service: serving means what `/readyz` means (LIVENESS-TRUTH).

use std::{pin::Pin, sync::Arc, time::Duration};

use tonic::{
    Request, Response, Status,
    codegen::tokio_stream::{Stream, wrappers::ReceiverStream},
};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
};
use windlass_proto::v1::{
    control_server::SERVICE_NAME as CONTROL, store_server::SERVICE_NAME as STORE,
    tasks_server::SERVICE_NAME as TASKS, workers_server::SERVICE_NAME as WORKERS,
};

use crate::http::Server;

/// How often the server checks itself for a watcher.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Services that a client can name; the empty name is the whole server.
const SERVICES: [&str; 5] = ["", TASKS, WORKERS, CONTROL, STORE];

pub(super) struct Watched(Arc<Server>);

pub(super) fn service(server: Arc<Server>) -> HealthServer<Watched> {
    HealthServer::new(Watched(server))
}

async fn state(server: &Server) -> HealthCheckResponse {
    let is_serving = server.operations.ready().await.ok;
    let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

#[async_trait::async_trait]
impl Health for Watched {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !SERVICES.contains(&request.into_inner().service.as_str()) {
            return Err(Status::not_found("there is no such service"));
        }
        Ok(Response::new(state(&self.0).await))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let is_known = SERVICES.contains(&request.into_inner().service.as_str());
        let server = Arc::clone(&self.0);
        let (tell, told) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let mut last = None;
            loop {
                let now = if is_known {
                    state(&server).await
                } else {
                    HealthCheckResponse { status: ServingStatus::ServiceUnknown.into() }
                };
                if last != Some(now.status) && tell.send(Ok(now)).await.is_err() {
                    return;
                }
                last = Some(now.status);
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = tell.closed() => return,
                    () = server.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(told))))
    }
}
