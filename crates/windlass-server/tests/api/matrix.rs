//! S2: every call in the descriptors and the OpenAPI document is made by every kind of caller. The answers
//! must agree with the table of calls.

use http::Request;
use http_body_util::{BodyExt, Full};
use prost::Message;
use tonic::{Code, Status, body::Body};
use tower_service::Service;
use windlass_core::Scope;
use windlass_server::access::{self, Auth, Call, Mode};

use crate::{access::Guarded, wire::Wire};

/// The parts of a descriptor set that name methods.
#[derive(Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    files: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "6")]
    services: Vec<ServiceEntry>,
}

#[derive(Message)]
struct ServiceEntry {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    methods: Vec<Method>,
}

#[derive(Message)]
struct Method {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "6")]
    server_streaming: bool,
}

/// Every method in the server's descriptors, and whether its answer is a stream.
pub fn methods() -> Vec<(String, bool)> {
    let mut methods = Vec::new();
    for set in [
        windlass_proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ] {
        for file in Files::decode(set).unwrap().files {
            for service in file.services {
                for method in service.methods {
                    let name = format!("{}.{}/{}", file.package, service.name, method.name);
                    methods.push((name, method.server_streaming));
                }
            }
        }
    }
    methods
}

/// Makes a call with an empty message.
async fn call(wire: &mut Wire, name: &str, is_stream: bool, token: Option<&str>) -> Status {
    let mut request =
        Request::post(format!("http://localhost/{name}")).header("content-type", "application/grpc");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::new(Full::from(&[0; 5][..]))).unwrap();
    let response = wire.call(request).await.unwrap();
    assert_eq!(response.status(), 200, "{name}");
    match Status::from_header_map(response.headers()) {
        Some(told) => told,
        None if is_stream => Status::ok("opened"),
        None => {
            let told = response.into_body().collect().await.unwrap();
            Status::from_header_map(told.trailers().unwrap()).unwrap()
        }
    }
}

/// Unknown callers: without a token, with a token that does not exist, and with a text that is no token.
fn strangers() -> [Option<String>; 3] {
    [None, Some(format!("wl_0123456789abcdef_{}", "A".repeat(43))), Some("x".to_owned())]
}

fn may(call: &Call, held: Scope) -> bool {
    call.scope.is_none_or(|scope| scope == held || held == Scope::Admin)
}

#[tokio::test]
async fn every_grpc_method_is_open_to_exactly_its_scope() {
    let server = Guarded::start().await;
    let (mut wire, _) = Wire::connect(&format!("http://{}", server.api.address)).await;
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, server.token(&[scope]).await));
    }
    let methods = methods();
    assert!(methods.len() > 45, "{methods:?}");
    for (name, is_stream) in methods {
        let of = Call::named(&name).unwrap_or_else(|| panic!("{name} is not in the table of calls"));
        for token in strangers() {
            let told = call(&mut wire, &name, is_stream, token.as_deref()).await;
            let is_refused = told.code() == Code::Unauthenticated;
            assert_eq!(is_refused, of.scope.is_some(), "{name} for a stranger with {token:?}: {told:?}");
            assert!(is_refused || is_served(&told), "{name}: {told:?}");
        }
        for (held, token) in &tokens {
            let told = call(&mut wire, &name, is_stream, Some(token)).await;
            if may(of, *held) {
                assert!(is_served(&told), "{held} for {name}: {told:?}");
            } else {
                let scope = of.scope.unwrap();
                assert_eq!(told.code(), Code::PermissionDenied, "{held} for {name}: {told:?}");
                assert!(
                    told.message().starts_with(&format!("this needs the scope {scope}; token ")),
                    "{told:?}"
                );
            }
        }
    }
}

/// Whether a call reached its service.
fn is_served(told: &Status) -> bool {
    !matches!(told.code(), Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented)
}

#[tokio::test]
async fn no_grpc_method_changes_anything_on_a_read_only_server() {
    let options = access::Options { auth: Auth::Tokens, mode: Mode::ReadOnly, ..access::Options::default() };
    let server = Guarded::with(options).await;
    let admin = server.token(&[Scope::Admin]).await;
    let (mut wire, _) = Wire::connect(&format!("http://{}", server.api.address)).await;
    for (name, is_stream) in methods() {
        let of = Call::named(&name).unwrap();
        let told = call(&mut wire, &name, is_stream, Some(&admin)).await;
        if of.destructive || matches!(of.scope, Some(Scope::Enqueue | Scope::Work)) {
            let expected = (Code::PermissionDenied, "this server is read-only");
            assert_eq!((told.code(), told.message()), expected, "{name}");
        } else {
            assert!(is_served(&told), "{name}: {told:?}");
        }
    }
}

#[tokio::test]
async fn every_documented_operation_is_open_to_exactly_its_scope() {
    let server = Guarded::start().await;
    let document = server.call("GET /v1/openapi.json", "").await.json();
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, server.token(&[scope]).await));
    }
    let mut operations = 0;
    for (route, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            operations += 1;
            let name = format!("{method} {route}");
            let of = Call::of_route(&method, route)
                .unwrap_or_else(|| panic!("{name} is not in the table of calls"));
            let path = name.replace("{id}", "no-such-thing").replace("{name}", "no-such-thing");
            for token in strangers() {
                let header = token.map(|token| format!("authorization: Bearer {token}\r\n"));
                let answer = server.call(&path, header.as_deref().unwrap_or_default()).await;
                assert_eq!(
                    answer.status == 401,
                    of.scope.is_some(),
                    "{name} for a stranger: {}",
                    answer.status
                );
                assert_ne!(answer.status, 403, "{name} for a stranger");
            }
            for (held, token) in &tokens {
                let answer = server.call_as(token, &path).await;
                assert_eq!(answer.status == 403, !may(of, *held), "{held} for {name}: {}", answer.status);
                assert!(!matches!(answer.status, 401 | 405), "{held} for {name}: {}", answer.status);
            }
        }
    }
    assert!(operations > 35, "{operations}");
}
