//! schemathesis reads the OpenAPI document from the server and calls every operation with valid and with
//! invalid input: no answer is 5xx, and none is missing from the document.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use e2e::{http::Api, process, up::Up};
use serde_json::{Value, json};

/// The tested version; another one may find other faults.
const VERSION: &str = "4.32.5";
/// How long it runs, with a token and without.
const SECONDS: (u32, u32) = (30, 10);
const SECONDS_LONG: (u32, u32) = (300, 60);
/// Calls that wait as long as their caller asks, or do not end; other tests make them.
const WAITING: [&str; 3] = ["wait_for_task", "wait_for_tasks", "events"];
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The program, in its own Python environment in the build folder; created once.
fn schemathesis() -> PathBuf {
    let built = process::windlass().unwrap();
    let place = built.parent().unwrap().join(format!("schemathesis-{VERSION}"));
    let (program, complete) = (place.join("bin/schemathesis"), place.join("complete"));
    if complete.exists() {
        return program;
    }
    let python = std::env::var("WINDLASS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let made = output(Command::new(python).args(["-m", "venv", "--clear"]).arg(&place));
    assert!(
        made.status.success(),
        "no environment for Python; scripts/install says what is missing: {}",
        text(&made)
    );
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", &format!("schemathesis=={VERSION}")]);
    let installed = output(&mut pip);
    assert!(installed.status.success(), "schemathesis could not be had from PyPI: {}", text(&installed));
    std::fs::write(complete, "").unwrap();
    program
}

/// Runs the program against a server; returns every call that it made, with its answer.
fn tried(address: &str, folder: &Path, token: Option<&str>, seconds: u32) -> Vec<(String, String, u64)> {
    let report = folder.join("report.har");
    let mut command = process::command(schemathesis());
    command
        .args(["run", &format!("{address}/v1/openapi.json"), "--checks", CHECKS, "--seed", "1", "--no-color"])
        .args(["--max-examples", "10", "--max-time", &seconds.to_string(), "--request-timeout", "30"])
        .args(WAITING.iter().flat_map(|call| ["--exclude-operation-id", call]))
        .args(["--report", "har", "--report-har-path"])
        .arg(&report)
        .current_dir(folder);
    if let Some(token) = token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let run = output(&mut command);
    assert!(run.status.success(), "{}", text(&run));
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let entries = report["log"]["entries"].as_array().unwrap();
    let call = |entry: &Value| {
        let url = entry["request"]["url"].as_str().unwrap();
        let path = url.strip_prefix(address).unwrap_or(url).split('?').next().unwrap().to_owned();
        let method = entry["request"]["method"].as_str().unwrap().to_owned();
        (method, path, entry["response"]["status"].as_u64().unwrap())
    };
    entries.iter().map(call).collect()
}

/// The operation of a call: a path with a fixed segment wins over one with a parameter.
fn operation(document: &Value, method: &str, path: &str) -> Option<String> {
    let mut fitting: Vec<&String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, methods)| methods.get(method.to_lowercase()).is_some())
        .map(|(route, _)| route)
        .filter(|route| {
            let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
            let (route, path) = (parts(route), parts(path));
            route.len() == path.len()
                && route.iter().zip(&path).all(|(part, given)| part.starts_with('{') || part == given)
        })
        .collect();
    fitting.sort_by_key(|route| route.matches('{').count());
    fitting.first().map(|route| format!("{method} {route}"))
}

fn windlass(folder: &Path, arguments: &[&str]) -> String {
    let mut command = process::command(process::windlass().unwrap());
    let said = output(command.args(arguments).current_dir(folder));
    assert!(said.status.success(), "{arguments:?}: {}", text(&said));
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

/// Objects of every sort, so that calls find them.
async fn seed(address: &str, token: &str) {
    let (api, bearer) = (Api::new(address), format!("Bearer {token}"));
    for body in [
        json!({"kind": "echo", "job": "0", "payload": {"n": 1}}),
        json!({"kind": "nobody", "workflow": "0"}),
        json!({"kind": "http", "payload": {"url": "http://127.0.0.1:1/"}, "max_attempts": 1}),
    ] {
        let made = api.post_with("/v1/tasks", &[("authorization", &bearer)], &body).await.unwrap();
        assert_eq!(made.status, 201, "{made:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_matches_the_openapi_document() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    let store = format!("sqlite:{}", place.join("windlass.db").display());
    windlass(&place, &["migrate", "--store", &store]);
    let token = windlass(&place, &["token", "create", "--scope", "admin", "--store", &store]);
    let up = Up::on(&place.join("windlass.db"), ["--auth", "tokens", "--log-level", "error"]).unwrap();
    seed(&up.address, &token).await;
    let seconds = if std::env::var_os("WINDLASS_LONG").is_some() { SECONDS_LONG } else { SECONDS };
    let address = up.address.clone();
    let document = Api::new(&address).get("/v1/openapi.json").await.unwrap().body;
    let run = tokio::task::spawn_blocking(move || {
        let with = tried(&address, &place, Some(&token), seconds.0);
        let without = tried(&address, &place, None, seconds.1);
        (with, without)
    });
    let (with, without) = tokio::time::timeout(Duration::from_mins(20), run).await.unwrap().unwrap();

    let all: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|methods| methods.as_object().unwrap().len())
        .sum();
    let of = |calls: &[(String, String, u64)], wanted: fn(u64) -> bool| -> BTreeSet<String> {
        let calls = calls.iter().filter(|(.., status)| wanted(*status));
        calls.filter_map(|(method, path, _)| operation(&document, method, path)).collect()
    };
    let good = of(&with, |status| (200..300).contains(&status));
    assert!(
        good.len() * 2 >= all,
        "only {} of {all} operations were answered with 2xx: {good:#?}",
        good.len()
    );
    assert!(with.iter().chain(&without).all(|(.., status)| *status < 500));
    // Without a token only public operations succeed.
    let open = of(&without, |status| (200..300).contains(&status));
    let guarded = |call: &String| {
        let (method, route) = call.split_once(' ').unwrap();
        document["paths"][route][method.to_lowercase()]["security"] != json!([])
    };
    let let_in: Vec<_> = open.iter().filter(|call| guarded(call)).collect();
    assert!(let_in.is_empty(), "answered without a token: {let_in:?}");
    assert!(of(&without, |status| status == 401).len() * 2 >= all, "the others were asked for a token");
}
