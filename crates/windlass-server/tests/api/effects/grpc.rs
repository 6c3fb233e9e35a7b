//! Every gRPC method.

use http::Request;
use http_body_util::{BodyExt, Full};
use prost::bytes::Bytes;
use tonic::{Code, Status, body::Body};
use tower_service::Service;
use windlass_server::access::Call;

use super::{Bearer, Dump, Scene, hostile::Arsenal};
use crate::{matrix::methods, wire::Wire};

/// A message with its head.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// Sends a body to a method. Returns its status; a stream that stays open is a success.
pub async fn send(wire: &mut Wire, method: &str, body: Vec<u8>, token: Option<&str>) -> Status {
    let mut request =
        Request::post(format!("http://localhost/{method}")).header("content-type", "application/grpc");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::new(Full::new(Bytes::from(body)))).unwrap();
    let response = wire.call(request).await.unwrap();
    assert_eq!(response.status(), 200, "{method}");
    if let Some(told) = Status::from_header_map(response.headers()) {
        return told;
    }
    if method.ends_with("/Watch") || method.ends_with("/WatchHints") {
        return Status::ok("opened");
    }
    let told = response.into_body().collect().await;
    let trailers = told.ok().and_then(|told| told.trailers().cloned());
    trailers
        .and_then(|trailers| Status::from_header_map(&trailers))
        .unwrap_or_else(|| Status::unknown("no status"))
}

/// The body of a call. For a stream, the messages contain their heads already.
pub fn body(method: &str, message: &[u8]) -> Vec<u8> {
    if method.ends_with("/Work") { message.to_vec() } else { framed(message) }
}

fn is_refused(told: &Status) -> bool {
    matches!(told.code(), Code::Unauthenticated | Code::PermissionDenied)
}

#[tokio::test]
async fn a_method_changes_only_what_its_caller_may_change() {
    for (method, _) in methods().into_iter().filter(|(method, _)| method.starts_with("windlass.")) {
        let call = Call::named(&method).unwrap();
        let mut changed = 0;
        for bearer in Bearer::ALL {
            let count = Arsenal::of(&Scene::set().await, bearer).messages(&method).len();
            for place in 0..count {
                // Each message is sent to a new scene.
                let scene = Scene::set().await;
                let message = Arsenal::of(&scene, bearer).messages(&method).remove(place);
                let (mut wire, _) = Wire::connect(&format!("http://{}", scene.server.api.address)).await;
                let before = Dump::of(&*scene.server.api.store).await;
                let told = send(&mut wire, &method, body(&method, &message), scene.token(bearer)).await;
                let after = Dump::of(&*scene.server.api.store).await;
                let what = format!("{bearer:?} calls {method} with message {place}, answered {told:?}");
                if is_refused(&told) {
                    assert_eq!(before, after, "{what}");
                }
                before.assert_allowed(&after, &scene, bearer, &what);
                changed += u32::from(bearer == Bearer::Admin && before != after);
                let findings = windlass_core::Store::audit(&*scene.server.api.store).await.unwrap();
                assert_eq!(findings, [], "{what}");
            }
        }
        assert!(
            !call.destructive || changed > 0,
            "{method}: its messages would change nothing for any caller"
        );
    }
}

#[tokio::test]
async fn a_work_token_cannot_choose_what_a_schedule_enqueues() {
    let scene = Scene::set().await;
    let (mut wire, _) = Wire::connect(&format!("http://{}", scene.server.api.address)).await;
    let store = scene.server.api.store.clone();
    let before = Dump::of(&*store).await;
    for message in Arsenal::of(&scene, Bearer::Work).messages("windlass.v1.Store/FireSchedule") {
        let method = "windlass.v1.Store/FireSchedule";
        assert_eq!(
            send(&mut wire, method, framed(&message), scene.token(Bearer::Work)).await.code(),
            Code::Ok
        );
    }
    let after = Dump::of(&*store).await;
    let new: Vec<_> = after.tasks.values().filter(|task| !before.tasks.contains_key(&task.id)).collect();
    assert_eq!(new.len(), 1, "one tick has come: {new:?}");
    assert_eq!(
        (new[0].lane.kind.as_str(), &new[0].payload, new[0].priority),
        ("tick", &scene.due_payload, 0)
    );
    assert_eq!(after.schedules[&scene.tonight.name], scene.tonight);
    let due = &after.schedules[&scene.due.name];
    assert_eq!((due.next_at, due.last_at), (Some(scene.due_next), scene.due.next_at));
}
