//! The gRPC API: the same operations, on the same port as HTTP/JSON, for workers and clients in any language.
//!
//! Reading order: [`tasks`] and [`control`] (what clients and operators do), [`workers`] (what workers do,
//! call by call), [`work`] and [`hub`] (the same over one stream, with push), [`store`] (what Windlass' own
//! runtime needs beyond that), [`speaker`] (which workers a caller may act for), [`room`] (how much memory
//! messages may take), [`health`], [`status`] (how errors look).

use std::sync::Arc;

use axum::{Router, middleware::from_fn_with_state};
use tonic::server::NamedService;
use windlass_proto::v1::{
    control_server::ControlServer, store_server::StoreServer, tasks_server::TasksServer,
    workers_server::WorkersServer,
};

use crate::{
    api::ErrorDetail,
    http::{Server, enqueue_max_bytes},
    operations::Operations,
};

mod control;
mod ends;
mod health;
mod hub;
mod room;
mod speaker;
mod status;
mod store;
mod tasks;
mod work;
mod workers;

use ends::Ends;
pub use hub::preferences::Affinity;
use hub::{Hub, straight::Straight};
use speaker::Registrations;
use status::status;

/// What every call can use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Api {
    server: Arc<Server>,
    ends: Arc<Ends>,
    hub: Arc<Hub>,
    registrations: Arc<Registrations>,
}

impl Api {
    fn operations(&self) -> &Operations {
        &self.server.operations
    }

    fn store(&self) -> &windlass_core::store::SharedStore {
        self.operations().store()
    }
}

/// The answer of a call.
type Answer<T> = Result<tonic::Response<T>, tonic::Status>;

/// Largest message that the server writes: an answer holds at most a page, or the payloads of a claim for
/// which the caller has slots.
const ANSWER_MAX_BYTES: usize = 1 << 30;

/// The answer to a call that is refused before it reaches its service.
pub(crate) fn refuse(error: ErrorDetail) -> axum::response::Response {
    status(error).into_http()
}

/// The routes of every service.
pub(crate) fn router(server: &Arc<Server>) -> Router<Arc<Server>> {
    let hub = Hub::new(Arc::clone(server.operations.store()), server.affinity());
    let (pushing, stopping) = (Arc::clone(&hub), Arc::clone(server));
    server.operations.set_adds(Arc::new(Straight(Arc::clone(&hub))));
    // Pushing stops when the server stops.
    tokio::spawn(async move { pushing.run(stopping.closed()).await });
    let (server_of, ends) = (Arc::clone(server), Arc::new(Ends::new()));
    let api = Api { server: server_of, ends, hub, registrations: Arc::default() };
    let max = enqueue_max_bytes(api.store().rules().payload_max_bytes);
    let router = Router::new();
    let router = add(
        router,
        TasksServer::new(api.clone())
            .max_decoding_message_size(max)
            .max_encoding_message_size(ANSWER_MAX_BYTES),
    );
    let router = add(
        router,
        WorkersServer::new(api.clone())
            .max_decoding_message_size(max)
            .max_encoding_message_size(ANSWER_MAX_BYTES),
    );
    let router = add(router, ControlServer::new(api.clone()));
    let router = add(
        router,
        StoreServer::new(api.clone())
            .max_decoding_message_size(max)
            .max_encoding_message_size(ANSWER_MAX_BYTES),
    );
    let router = add(router, health::service(Arc::clone(server)));
    reflection(router).layer(from_fn_with_state(Arc::clone(server), room::count))
}

/// Standard tools ask the server for its services by reflection; many still use the older version of that
/// protocol.
fn reflection(router: Router<Arc<Server>>) -> Router<Arc<Server>> {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(windlass_proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // Building fails only if the descriptors are broken. They are part of the program and a test reads them;
    // without them the server runs without reflection.
    let router = match builder().build_v1() {
        Ok(service) => add(router, service),
        Err(_) => router,
    };
    match builder().build_v1alpha() {
        Ok(service) => add(router, service),
        Err(_) => router,
    }
}

fn add<S, B>(router: Router<Arc<Server>>, service: S) -> Router<Arc<Server>>
where
    S: tower_service::Service<
            axum::extract::Request,
            Response = http::Response<B>,
            Error = std::convert::Infallible,
            Future: Send + 'static,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    B: axum::body::HttpBody<Data = bytes::Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    router.route_service(&format!("/{}/{{method}}", S::NAME), service)
}
