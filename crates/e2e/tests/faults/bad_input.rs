//! Wrong input: a one-line error with a remedy, the documented exit code, and no lost task or hanging
//! process.

use e2e::{process, up::Up};
use serde_json::json;

use crate::{assert_refused, say, windlass};

const NONE: [&str; 0] = [];

/// A server in its own folder.
struct Server {
    folder: tempfile::TempDir,
    up: Up,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let up = Up::on(&folder.path().join("windlass.db"), NONE).unwrap();
        Self { folder, up }
    }

    /// Runs a command against this server.
    fn say<const N: usize>(&self, arguments: [&str; N]) -> process::Said {
        let mut command = windlass(self.folder.path(), arguments);
        command.args(["--server", &self.up.address]);
        process::run(command).unwrap()
    }

    /// A task still runs after every wrong input.
    #[track_caller]
    fn assert_works(&self) {
        let said = self.say(["enqueue", "echo", "--payload", r#"{"still":"here"}"#, "--wait"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.contains(r#"{"still":"here"}"#), "{said:?}");
    }

    /// The number of its tasks.
    async fn tasks(&self) -> usize {
        self.up.api().get("/v1/tasks").await.unwrap().ids().len()
    }
}

#[test]
fn payload_that_is_not_json_is_refused_and_not_shown() {
    let server = Server::start();
    let said = server.say(["enqueue", "echo", "--payload", r#"{"secret": hunter2"#]);
    assert_refused(&said, 2, &["JSON"]);
    assert!(!said.stderr.contains("hunter2"), "a payload never appears in an error: {said:?}");
    server.assert_works();
}

#[tokio::test(flavor = "multi_thread")]
async fn body_that_is_not_json_is_refused_with_400() {
    let server = Server::start();
    let api = server.up.api();
    for body in ["{", "", "[1, 2", "\u{0}", r#"{"kind": "echo", "payload": {]}"#] {
        let answer = api.post_raw("/v1/tasks", body).await.unwrap();
        assert_eq!((answer.status, answer.error_code()), (400, Some("invalid")), "{body:?}: {answer:?}");
    }
    assert_eq!(server.tasks().await, 0);
    server.assert_works();
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_refused_by_name() {
    let server = Server::start();
    let answer = server.up.api().post("/v1/tasks", &json!({"kind": "echo", "paylod": 1})).await.unwrap();
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.error_message().unwrap().contains("paylod"), "{answer:?}");
}

#[test]
fn unknown_kind_is_enqueued_with_a_warning_and_never_claimed() {
    let server = Server::start();
    let said = server.say(["enqueue", "resize", "--payload", "{}"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("warning") && said.stderr.contains("resize"), "{said:?}");
    let id = said.stdout.trim().to_owned();
    server.assert_works();
    let why = server.say(["tasks", "why", &id]);
    assert!(why.stdout.contains("no live worker"), "{why:?}");
    let shown = server.say(["tasks", "show", &id, "--json"]);
    let task: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&task["state"], &task["attempt"]), (&json!("ready"), &json!(0)), "{task}");
}

#[test]
fn unknown_flag_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [["up", "--slotz", "5"], ["tasks", "ls", "--stat"], ["enqueue", "echo", "--prioritee"]] {
        assert_refused(&say(folder.path(), arguments), 2, &[arguments[1].strip_prefix("ls").unwrap_or("--")]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn nonsense_in_a_setting_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(&say(folder.path(), ["up", "--slots", "many"]), 2, &["slots", "many"]);
    std::fs::write(folder.path().join("windlass.toml"), "slots = 5\nslosts = 7\n").unwrap();
    assert_refused(&say(folder.path(), ["config", "check"]), 2, &["slosts", "slots", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_payload_is_refused_by_the_server() {
    let server = Server::start();
    let api = server.up.api();
    let over = json!({"kind": "echo", "payload": "x".repeat(1 << 20)});
    let answer = api.post("/v1/tasks", &over).await.unwrap();
    assert_eq!((answer.status, answer.error_code()), (413, Some("too_large")), "{answer:?}");
    assert!(answer.error_message().unwrap().contains("payload_max_bytes"), "{answer:?}");

    let text = "x".repeat((1 << 20) - 2);
    let answer = api.post("/v1/tasks", &json!({"kind": "nobody", "payload": text})).await.unwrap();
    assert!(answer.status < 300, "{answer:?}");
    let kept = api.get(&format!("/v1/tasks/{}", answer.ids()[0])).await.unwrap();
    assert_eq!(kept.body["payload"].as_str().map(str::len), Some(text.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_100_mb_is_refused_without_being_buffered() {
    let server = Server::start();
    let body = format!(r#"{{"kind": "echo", "payload": "{}"}}"#, "x".repeat(100 << 20));
    // The server may answer or cut the connection while the body is still being sent.
    if let Ok(answer) = server.up.api().post_raw("/v1/tasks", body).await {
        assert_eq!(answer.status, 413, "{:?}", answer.error_message());
    }
    assert_eq!(server.tasks().await, 0);
    server.assert_works();
}

#[tokio::test(flavor = "multi_thread")]
async fn json_100_000_levels_deep_is_refused_and_the_server_lives() {
    let server = Server::start();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = server
        .up
        .api()
        .post_raw("/v1/tasks", format!(r#"{{"kind": "echo", "payload": {deep}}}"#))
        .await
        .unwrap();
    assert_eq!((answer.status, answer.error_code()), (400, Some("invalid")), "{answer:?}");
    std::fs::write(server.folder.path().join("deep.json"), &deep).unwrap();
    assert_refused(&server.say(["enqueue", "echo", "--payload", "@deep.json"]), 2, &["deep"]);
    assert_eq!(server.tasks().await, 0);
    server.assert_works();
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_in_a_payload_is_stored_and_returned() {
    let server = Server::start();
    let said = server.say(["enqueue", "echo", "--payload", r#"{"text":"a\u0000b"}"#, "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains(r#"{"text":"a\u0000b"}"#), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf_8_in_a_payload_is_refused_and_the_server_lives() {
    let server = Server::start();
    let body = b"{\"kind\": \"echo\", \"payload\": \"\xff\xfe\"}".to_vec();
    let answer = server.up.api().post_raw("/v1/tasks", body).await.unwrap();
    assert_eq!((answer.status, answer.error_code()), (400, Some("invalid")), "{answer:?}");
    std::fs::write(server.folder.path().join("bad.json"), b"\"\xff\xfe\"").unwrap();
    assert_refused(&server.say(["enqueue", "echo", "--payload", "@bad.json"]), 2, &["UTF-8"]);
    assert_eq!(server.tasks().await, 0);
    server.assert_works();
}

#[test]
fn unknown_task_is_not_found() {
    let server = Server::start();
    assert_refused(&server.say(["tasks", "show", "0000000000000"]), 3, &["0000000000000"]);
    assert_refused(&server.say(["tasks", "show", "nonsense"]), 2, &["nonsense"]);
}

#[test]
fn bytes_as_a_payload_are_shown_as_size_and_digest() {
    let server = Server::start();
    let bytes = server.folder.path().join("lines.jsonl");
    std::fs::write(&bytes, "{\"kind\":\"nobody\",\"payload_base64\":\"//79\"}\n").unwrap();
    let said = server.say(["enqueue", "--from", "lines.jsonl"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown = server.say(["tasks", "ls", "--kind", "nobody", "--json"]);
    assert!(shown.stdout.contains("sha256:") && !shown.stdout.contains("//79"), "{shown:?}");
}
