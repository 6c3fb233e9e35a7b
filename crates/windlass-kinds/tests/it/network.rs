//! Servers that answer wrongly or not at all: every such failure is retried.

use std::sync::Arc;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use windlass_kinds::Http;

use crate::support::{Recorder, Script, call, http, loopback, retried};

/// A server that calls `answer` for every connection after it has read the head of the request.
async fn server<F, W>(answer: F) -> String
where
    F: Fn(TcpStream) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            tokio::spawn(answer(stream));
        }
    });
    url
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let url = server(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let error = retried(call(&http(), &json!({"url": url, "timeout_ms": 50})).await);
    assert!(error.contains("timed out") && error.contains("timeout_ms (50)"), "{error}");
}

#[tokio::test]
async fn the_time_out_covers_the_body() {
    let url = server(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin").await;
        std::future::pending::<()>().await;
    })
    .await;
    let error = retried(call(&http(), &json!({"url": url, "timeout_ms": 50})).await);
    assert!(error.contains("timed out"), "{error}");
}

#[tokio::test]
async fn a_body_without_end_is_cut_and_left() {
    let url = server(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    })
    .await;
    let output = crate::support::output(call(&http(), &json!({"url": url, "max_body_bytes": 1000})).await);
    assert_eq!(output["body"].as_str().unwrap().len(), 1000);
    assert_eq!(output["truncated"], true);
}

#[tokio::test]
async fn a_reset_connection_is_retried() {
    let url = server(|stream| async move {
        stream.set_zero_linger().unwrap();
        drop(stream);
    })
    .await;
    let error = retried(call(&http(), &json!({"url": url})).await);
    assert!(error.contains("reset") || error.contains("closed"), "{error}");
}

#[tokio::test]
async fn a_connection_closed_inside_a_body_is_retried() {
    let url = server(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin").await;
    })
    .await;
    retried(call(&http(), &json!({"url": url})).await);
}

#[tokio::test]
async fn an_answer_that_is_not_http_or_has_an_endless_head_is_retried() {
    let url = server(|mut stream| async move {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n").await;
    })
    .await;
    retried(call(&http(), &json!({"url": url})).await);
    let url = server(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").await;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    })
    .await;
    retried(call(&http(), &json!({"url": url})).await);
}

#[tokio::test]
async fn a_refused_connection_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = retried(call(&http(), &json!({"url": url})).await);
    assert!(error.contains("no connection") && !error.contains('\n'), "{error}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_retried() {
    for resolver in [Script::new(&[]), Script::new(&[&[]])] {
        let recorder = Recorder::new(None);
        let http = Http::with_network(loopback(), resolver, Arc::clone(&recorder) as _).unwrap();
        let error = retried(call(&http, &json!({"url": "http://nowhere.example/"})).await);
        assert!(error.contains("nowhere.example: the name was not resolved"), "{error}");
        assert!(recorder.went_to().is_empty());
    }
}

#[tokio::test]
async fn every_address_of_a_host_is_tried_before_giving_up() {
    let resolver = Script::new(&[&["127.0.0.2", "127.0.0.3", "127.0.0.4"]]);
    let recorder = Recorder::new(None);
    let http = Http::with_network(loopback(), resolver, Arc::clone(&recorder) as _).unwrap();
    retried(call(&http, &json!({"url": "http://many.example:81/"})).await);
    assert_eq!(recorder.went_to(), ["127.0.0.2:81", "127.0.0.3:81", "127.0.0.4:81"]);
}
