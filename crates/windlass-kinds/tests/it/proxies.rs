//! Proxies in the environment: ignored, unless the operator allows them.
//!
//! Environment variables can only be set for a new process, so each test runs itself again in a child process
//! that has them and makes the request.

use std::process::{Command, ExitStatus, Stdio};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use windlass_kinds::{Http, HttpOptions};

use crate::support::{Server, answer, call, dead, loopback, output, retried};

/// The URL that a child process fetches.
const TARGET: &str = "WINDLASS_TEST_TARGET";

fn child_target() -> Option<String> {
    std::env::var(TARGET).ok()
}

/// Runs a test of this file again with these variables.
async fn run_again(test: &str, variables: &[(&str, &str)]) -> ExitStatus {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("proxies::{test}")]).stdout(Stdio::null()).stderr(Stdio::null());
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        child.env_remove(name).env_remove(name.to_ascii_uppercase());
    }
    child.envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || child.status().unwrap()).await.unwrap()
}

/// A proxy that opens tunnels and records the head of every request to it.
async fn proxy() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://me:pw@{}", listener.local_addr().unwrap());
    let (heads, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tunnel(stream, heads.clone()));
        }
    });
    (url, received)
}

async fn tunnel(mut client: TcpStream, heads: mpsc::UnboundedSender<String>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    heads.send(head.replace("\r\n", "|")).unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let mut target = TcpStream::connect(target).await.unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n").await.unwrap();
    let _ = copy_bidirectional(&mut client, &mut target).await;
}

#[tokio::test]
async fn proxies_in_the_environment_are_ignored() {
    if let Some(url) = child_target() {
        let http = Http::new(loopback()).unwrap();
        assert_eq!(output(call(&http, &json!({"url": url})).await)["body"], "direct");
        return;
    }
    let server = Server::start(|_| answer(200, &[], "direct")).await;
    let (proxy, mut heads) = proxy().await;
    let url = server.url("/");
    let variables = [
        (TARGET, url.as_str()),
        ("http_proxy", &proxy),
        ("HTTP_PROXY", &proxy),
        ("all_proxy", &proxy),
        ("ALL_PROXY", &proxy),
    ];
    assert!(run_again("proxies_in_the_environment_are_ignored", &variables).await.success());
    assert!(heads.try_recv().is_err());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_proxy_gets_only_a_checked_address() {
    if let Some(url) = child_target() {
        let http = Http::new(HttpOptions { use_env_proxy: true, ..loopback() }).unwrap();
        assert_eq!(output(call(&http, &json!({"url": url})).await)["body"], "tunnelled");
        dead(call(&http, &json!({"url": "http://10.0.0.1/"})).await);
        return;
    }
    let server = Server::start(|_| answer(200, &[], "tunnelled")).await;
    let (proxy, mut heads) = proxy().await;
    let url = server.url("/");
    let variables = [(TARGET, url.as_str()), ("HTTP_PROXY", &proxy)];
    let test = "a_proxy_gets_only_a_checked_address";
    assert!(run_again(test, &variables).await.success());
    let target = server.address;
    assert_eq!(
        heads.try_recv().unwrap(),
        format!("CONNECT {target} HTTP/1.1|Host: {target}|Proxy-Authorization: Basic bWU6cHc=||")
    );
    assert!(heads.try_recv().is_err());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_a_failure_that_is_retried() {
    if let Some(url) = child_target() {
        let http = Http::new(HttpOptions { use_env_proxy: true, ..loopback() }).unwrap();
        let error = retried(call(&http, &json!({"url": url})).await);
        assert!(error.contains("the proxy answered CONNECT with \"407\""), "{error}");
        return;
    }
    let proxy = Server::start(|_| answer(407, &[], "")).await;
    let target = Server::start(|_| answer(200, &[], "")).await;
    let variables = [(TARGET, target.url("/")), ("http_proxy", proxy.url(""))];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert!(run_again("a_proxy_that_refuses_is_a_failure_that_is_retried", &variables).await.success());
    assert_eq!(proxy.seen().len(), 1);
    assert_eq!(target.seen().len(), 0);
}
