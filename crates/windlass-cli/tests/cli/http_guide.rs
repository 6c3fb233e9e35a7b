//! Runs the commands of docs/guides/http-api.md as they are printed there, against a server of the test's
//! own.

use std::process::{Command, Stdio};

use crate::support::{Running, finish};

const GUIDE: &str = include_str!("../../../../docs/guides/http-api.md");
/// The usual address of a server; the guide uses it.
const USUAL: &str = "http://127.0.0.1:7878";

/// The blocks of the guide that a reader types, joined into one script.
fn script() -> String {
    let blocks = GUIDE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_commands_of_the_http_guide_work_as_they_stand_there() {
    let up = Running::up(&[]);
    let script = script();
    assert!(script.matches(USUAL).count() == 1 && script.matches("curl").count() > 20, "{script}");
    let mut shell = Command::new("sh");
    shell.args(["-euc", &script.replace(USUAL, &up.address)]).current_dir(up.folder.path());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = finish(shell).done();
    // One fact of each part: a known key, the end of a task, a cancelled task, a job and its limit, a
    // schedule.
    for fact in [
        "\"existing\":true",
        "\"output\":{\"n\":1}",
        "\"cancelled\"",
        "\"concurrency\":5",
        "\"removed\":\"beat\"",
    ] {
        assert!(said.stdout.replace("\": ", "\":").contains(fact), "{fact} is missing: {said:?}");
    }
    let openapi = std::fs::read_to_string(up.folder.path().join("openapi.json")).unwrap();
    let openapi: serde_json::Value = serde_json::from_str(&openapi).unwrap();
    assert_eq!(openapi["openapi"], "3.1.0");
}

#[test]
fn every_route_of_the_http_guide_is_in_the_openapi_document() {
    let up = Running::up(&[]);
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", &format!("{}/v1/openapi.json", up.address)]);
    let document = finish(curl).done().json();
    let known: Vec<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let named = GUIDE.split("/v1/").skip(1).map(|rest| {
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/{}$._-".contains(c)).unwrap_or(rest.len());
        format!("/v1/{}", rest[..end].trim_end_matches(['.', '/']))
    });
    for route in named {
        let same = |path: &&str| {
            let (one, two): (Vec<_>, Vec<_>) = (path.split('/').collect(), route.split('/').collect());
            one.len() == two.len() && one.iter().zip(&two).all(|(a, b)| a == b || a.starts_with('{'))
        };
        assert!(known.iter().any(same), "{route} is no route of the API");
    }
}
