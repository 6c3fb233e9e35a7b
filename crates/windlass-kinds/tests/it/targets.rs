//! Promise S6: only checked addresses are reached, and the socket connects to the address that was checked.

use std::sync::{Arc, atomic::Ordering};

use serde_json::json;
use windlass_kinds::{Http, HttpOptions};

use crate::support::{Recorder, Script, Server, answer, call, dead, output, retried};

#[tokio::test]
async fn targets_that_are_not_public_are_dead() {
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "0.0.0.0",
        "0",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.0.1",
        "100.64.0.1",
        "224.0.0.1",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00::1]",
        "[fe80::1]",
    ] {
        let recorder = Recorder::new(None);
        let http =
            Http::with_network(HttpOptions::default(), Script::new(&[]), Arc::clone(&recorder) as _).unwrap();
        for scheme in ["http", "https"] {
            let reason = dead(call(&http, &json!({"url": format!("{scheme}://{host}/")})).await);
            assert!(reason.contains("--allow-target"), "{host}: {reason}");
        }
        assert!(recorder.went_to().is_empty(), "{host}");
    }
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused() {
    for addresses in [&["10.0.0.5"][..], &["127.0.0.1", "::1"], &["::ffff:192.168.1.1"], &["fd00:ec2::254"]] {
        let recorder = Recorder::new(None);
        let resolver = Script::new(&[addresses]);
        let http = Http::with_network(HttpOptions::default(), resolver, Arc::clone(&recorder) as _).unwrap();
        let reason = dead(call(&http, &json!({"url": "http://intranet.example/"})).await);
        assert!(reason.contains("intranet.example") && reason.contains("--allow-target"), "{reason}");
        assert!(recorder.went_to().is_empty(), "{addresses:?}");
    }
}

#[tokio::test]
async fn only_checked_addresses_of_several_are_tried() {
    let recorder = Recorder::new(None);
    let resolver = Script::new(&[&["10.0.0.5", "8.8.8.8", "::1", "2606:4700::1"]]);
    let http = Http::with_network(HttpOptions::default(), resolver, Arc::clone(&recorder) as _).unwrap();
    retried(call(&http, &json!({"url": "http://mixed.example/"})).await);
    assert_eq!(recorder.went_to(), ["8.8.8.8:80", "[2606:4700::1]:80"]);
}

#[tokio::test]
async fn an_allowed_block_is_reached_and_its_neighbour_is_not() {
    let server = Server::start(|_| answer(200, &[], "in")).await;
    let recorder = Recorder::new(Some(server.address));
    let options =
        HttpOptions { allow_targets: vec!["10.1.0.0/16".parse().unwrap()], ..HttpOptions::default() };
    let resolver = Script::new(&[&["10.1.2.3"], &["10.2.2.3"]]);
    let http = Http::with_network(options, resolver, Arc::clone(&recorder) as _).unwrap();
    assert_eq!(output(call(&http, &json!({"url": "http://in.example:8080/"})).await)["body"], "in");
    dead(call(&http, &json!({"url": "http://out.example:8080/"})).await);
    assert_eq!(recorder.went_to(), ["10.1.2.3:8080"]);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_resolved_only_once() {
    let server = Server::start(|_| answer(200, &[("connection", "close")], "")).await;
    let recorder = Recorder::new(Some(server.address));
    let resolver = Script::new(&[&["8.8.8.8"], &["127.0.0.1"]]);
    let http =
        Http::with_network(HttpOptions::default(), Arc::clone(&resolver) as _, Arc::clone(&recorder) as _)
            .unwrap();
    let payload = json!({"url": "http://rebind.example/"});
    output(call(&http, &payload).await);
    assert_eq!(resolver.names.lock().unwrap().len(), 1, "one look-up serves check and connection");
    let reason = dead(call(&http, &payload).await);
    assert!(reason.contains("127.0.0.1"), "{reason}");
    assert_eq!(recorder.went_to(), ["8.8.8.8:80"]);
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_not_connected() {
    for location in [
        "http://127.0.0.1:9/",
        "http://0x7f.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://private.example/",
        "//169.254.169.254/latest/meta-data",
    ] {
        let server = Server::start(move |_| answer(302, &[("location", location)], "")).await;
        let recorder = Recorder::new(Some(server.address));
        let resolver = Script::new(&[&["8.8.8.8"], &["10.0.0.1"]]);
        let http = Http::with_network(HttpOptions::default(), resolver, Arc::clone(&recorder) as _).unwrap();
        let reason = dead(call(&http, &json!({"url": "http://public.example/"})).await);
        assert!(reason.contains("--allow-target"), "{location}: {reason}");
        assert_eq!(recorder.went_to(), ["8.8.8.8:80"], "{location}");
        assert_eq!(server.connections.load(Ordering::SeqCst), 1, "{location}");
    }
}

#[tokio::test]
async fn hosts_never_share_a_connection() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let recorder = Recorder::new(Some(server.address));
    let resolver = Script::new(&[&["8.8.8.8"], &["8.8.8.8"], &["10.0.0.1"]]);
    let http = Http::with_network(HttpOptions::default(), resolver, Arc::clone(&recorder) as _).unwrap();
    for url in ["http://a.example/", "http://a.example/x", "http://b.example/"] {
        output(call(&http, &json!({"url": url})).await);
    }
    assert_eq!(recorder.went_to().len(), 2, "one connection for each host");
    dead(call(&http, &json!({"url": "http://c.example/"})).await);
    assert_eq!(recorder.went_to().len(), 2);
}
