//! S2, S7: random messages for every method and the stream, from bearers of every scope. The server must
//! answer each with a status, must not stop, and must leave a store that its audit finds sound. Seeds are
//! fixed unless `WINDLASS_FUZZ_SEED` sets another one; `WINDLASS_LONG=1` sends fifty times as many messages.

mod dice;
mod shapes;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::Request;
use http_body_util::{BodyExt, Full};
use prost::bytes::Bytes;
use tonic::{Code, Status, body::Body};
use tower_service::Service;
use windlass_conformance::Harness;
use windlass_core::{Name, NewTask, Payload, Rules, Store};
use windlass_server::{
    Operations,
    access::{self, Auth},
    api::TokenRequest,
    http::Options,
};

use self::{
    dice::Dice,
    shapes::{Shapes, damaged},
};
use crate::{harness::Served, wire::Wire};

/// Messages of each sort for each method and bearer.
const EACH: u64 = 2;
/// The same in a long run.
const EACH_LONG: u64 = 100;
/// How long a call may take that does not wait. Far more than it needs: only a call that hangs takes longer.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// Calls that may wait because a random message asked them to.
const WAITING: [&str; 2] = ["windlass.v1.Workers/Claim", "windlass.v1.Tasks/WaitTasks"];

/// Panics in this process.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn each() -> u64 {
    if std::env::var_os("WINDLASS_LONG").is_some() { EACH_LONG } else { EACH }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// A server that receives random messages.
struct Target {
    served: Served,
    store: Arc<dyn Store>,
    wire: Wire,
    tokens: Vec<String>,
    shapes: Shapes,
    texts: Vec<String>,
}

impl Target {
    async fn start(store: Arc<dyn Store>) -> Self {
        let access = access::Options { auth: Auth::Tokens, ..access::Options::default() };
        let operations = Operations::new(Arc::clone(&store));
        let mut tokens = Vec::new();
        for (scope, queue) in [("read", ""), ("enqueue", ""), ("work", ""), ("work", "q"), ("admin", "")] {
            let queues =
                Some(queue).filter(|queue| !queue.is_empty()).map(|queue| Name::new("queue", queue).unwrap());
            let request = TokenRequest {
                scopes: vec![scope.to_owned()],
                queues: queues.into_iter().collect(),
                ..TokenRequest::default()
            };
            tokens.push(operations.create_token(request).await.unwrap().token);
        }
        let served = Served::with(Arc::clone(&store), Options { access, ..Options::default() }).await;
        let (wire, _) = Wire::connect(&served.url).await;
        let mut texts = odd_texts();
        for n in 0..20 {
            let task = NewTask {
                job: (n % 3 == 0).then(|| name("j")),
                ..NewTask::new("a", Payload::bytes(*b"x")).unwrap()
            };
            texts.push(store.enqueue(vec![task]).await.unwrap()[0].id.to_string());
        }
        Self { served, store, wire, tokens, shapes: Shapes::load(), texts }
    }

    /// Sends a body and returns the status. A broken connection is a failure.
    async fn send(&mut self, method: &str, token: &str, body: Vec<u8>) -> Option<Status> {
        let request = Request::post(format!("http://localhost/{method}"))
            .header("content-type", "application/grpc")
            .header("authorization", format!("Bearer {token}"))
            .body(Body::new(Full::new(Bytes::from(body))))
            .unwrap();
        let response = self.wire.call(request).await.unwrap_or_else(|error| panic!("{method}: {error:?}"));
        if let Some(told) = Status::from_header_map(response.headers()) {
            return Some(told);
        }
        if method.ends_with("/WatchHints") {
            return None;
        }
        let body = response.into_body().collect().await.unwrap_or_else(|error| panic!("{method}: {error:?}"));
        body.trailers().and_then(Status::from_header_map)
    }

    /// One message: complete, damaged, or of random bytes. A stream sends several.
    fn body(&self, dice: &mut Dice, method: &str, input: &str) -> Vec<u8> {
        let count = if method.ends_with("/Work") { 1 + dice.below(8) } else { 1 };
        let mut body = Vec::new();
        for place in 0..count {
            let mut message = self.shapes.message(dice, input, &self.texts);
            if method.ends_with("/Work") && place == 0 {
                // Mostly a hello; without one the server ends the stream at the first message.
                let hello = self.shapes.message(dice, ".windlass.v1.Hello", &self.texts);
                message = [vec![0x0a], varint(hello.len()), hello].concat();
            }
            body.extend(framed(&match dice.below(4) {
                0 | 1 => message,
                2 => damaged(dice, message),
                _ => (0..dice.below(64)).map(|_| dice.next() as u8).collect(),
            }));
        }
        // Sometimes the head of a message is damaged too.
        if dice.once_in(10) { damaged(dice, body) } else { body }
    }

    /// Calls every method with every token.
    async fn round(&mut self, dice: &mut Dice) {
        for (method, input) in self.shapes.methods.clone() {
            for token in self.tokens.clone() {
                let body = self.body(dice, &method, &input);
                let shown = format!("{method} {body:02x?}");
                let waits = WAITING.contains(&method.as_str());
                let most = if waits { Duration::from_millis(200) } else { ANSWER_MAX };
                let told = tokio::time::timeout(most, self.send(&method, &token, body)).await;
                assert!(told.is_ok() || waits, "no answer to {shown}");
                let status = told.ok().flatten();
                let shown = format!("{shown:.400}: {status:?}");
                let is_broken = status
                    .as_ref()
                    .is_some_and(|status| status.code() == Code::Internal && !is_decode(status));
                assert!(!is_broken, "the server failed at {shown}");
            }
        }
    }
}

/// Whether a status means that a message could not be decoded, which the codec reports as internal.
fn is_decode(status: &Status) -> bool {
    let text = status.message();
    ["decode", "protobuf", "compress", "protocol error", "EOF", "Unexpected", "Missing request message"]
        .iter()
        .any(|word| text.contains(word))
}

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn varint(len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(len as u64, &mut bytes);
    bytes
}

/// Texts that have a meaning somewhere, and texts that should have none.
fn odd_texts() -> Vec<String> {
    let mut texts: Vec<String> =
        ["", "a", "b", "q", "default", "j", "w", "w1", "w2", "w3", "w4", "w9999999", "s", "\0", "{}"]
            .map(str::to_owned)
            .to_vec();
    texts.push("w".repeat(300));
    texts.push("\u{202e}x".to_owned());
    texts.push("w-9223372036854775808".to_owned());
    texts.push("x".repeat(100_000));
    texts.push("[".repeat(5_000));
    texts.push(r#"{"v":1,"cron":"* * * * *","tz":"UTC","kind":"a"}"#.to_owned());
    texts
}

/// Sends random messages to a server on a store of a harness.
async fn fuzz(harness: &dyn Harness, seed: u64) {
    let set = std::env::var("WINDLASS_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = set.unwrap_or(seed);
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.lock().unwrap().push(panic.to_string());
        shown(panic);
    }));
    let mut target = Target::start(harness.open(Rules::default()).await).await;
    let mut dice = Dice::new(seed);
    for round in 0..each() {
        target.round(&mut dice).await;
        let findings = target.store.audit().await.unwrap();
        assert_eq!(findings, [], "after round {round} of seed {seed}");
    }
    let (admin, live) = (target.tokens[4].clone(), framed(&[]));
    let told = target.send("windlass.v1.Store/GetRules", &admin, live).await.unwrap();
    assert_eq!(told.code(), Code::Ok, "it serves on");
    target.served.end().await;
    let panics = PANICS.lock().unwrap().clone();
    assert!(panics.is_empty(), "{panics:?}");
}

#[tokio::test]
async fn the_model_survives_messages_by_chance() {
    fuzz(&windlass_conformance::MemoryHarness::new(), 1).await;
}

#[tokio::test]
async fn the_embedded_store_survives_random_messages() {
    fuzz(&crate::sqlite::support::SqliteHarness::new(windlass_sqlite::Durability::Normal), 2).await;
}

#[tokio::test]
async fn the_postgresql_store_survives_random_messages() {
    fuzz(&crate::postgres::support::PostgresHarness::new(), 3).await;
}
