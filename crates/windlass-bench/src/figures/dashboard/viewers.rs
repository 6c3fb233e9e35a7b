//! Viewers of the dashboard, as their browsers behave: a page, its style and script, and then its content every
//! two seconds, with the tag of what the viewer already has.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// How often a page asks for its content.
pub(super) const EVERY: Duration = Duration::from_secs(2);
/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// What viewers have open: most of them the overview.
const PAGES: [&str; 10] =
    ["/", "/", "/", "/", "/queues", "/queues/default", "/tasks", "/dead", "/jobs", "/workers"];
/// How long a viewer who comes and goes stays.
const STAY: Duration = Duration::from_secs(1);

/// One browser: a connection of its own, and what it has seen last.
pub(super) struct Browser {
    origin: String,
    http: Client<HttpConnector, Empty<Bytes>>,
    tag: Option<HeaderValue>,
}

impl Browser {
    pub(super) fn new(port: u16) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { origin: format!("http://127.0.0.1:{port}"), http, tag: None }
    }

    async fn ask(&self, path: &str, headers: HeaderMap) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let mut request = Request::get(format!("{}{path}", self.origin)).body(Empty::new())?;
        *request.headers_mut() = headers;
        let exchange = async {
            let (head, body) = self.http.request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let is_fine = head.status.is_success() || head.status == StatusCode::NOT_MODIFIED;
            anyhow::ensure!(is_fine, "{path} was answered with {}", head.status);
            Ok((head.status, head.headers, body))
        };
        tokio::time::timeout(ANSWER_MAX, exchange).await?
    }

    /// Opens a page, and loads what it names.
    pub(super) async fn open(&mut self, page: &str) -> anyhow::Result<()> {
        let (_, _, body) = self.ask(page, HeaderMap::new()).await?;
        self.tag = None;
        let html = String::from_utf8_lossy(&body);
        for part in html.split('"').filter(|part| part.contains("/assets/")) {
            self.ask(part, HeaderMap::new()).await?;
        }
        Ok(())
    }

    /// Asks for the content of the page that is open.
    pub(super) async fn look(&mut self, page: &str) -> anyhow::Result<()> {
        let mut headers = HeaderMap::new();
        headers.insert("windlass-fragment", HeaderValue::from_static("1"));
        if let Some(tag) = &self.tag {
            headers.insert(header::IF_NONE_MATCH, tag.clone());
        }
        let (_, found, _) = self.ask(page, headers).await?;
        self.tag = found.get(header::ETAG).cloned();
        Ok(())
    }

    /// Asks for content that is drawn for this call, as after a change. Returns how long that took.
    pub(super) async fn fresh(&self, page: &str) -> anyhow::Result<Duration> {
        let mut headers = HeaderMap::new();
        for name in ["windlass-fragment", "windlass-fresh"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        let asked = Instant::now();
        self.ask(page, headers).await?;
        Ok(asked.elapsed())
    }
}

/// Whether the server answers a path with a success.
pub(super) async fn status(port: u16, path: &str) -> anyhow::Result<()> {
    Browser::new(port).ask(path, HeaderMap::new()).await.map(drop)
}

/// Viewers with an open page.
pub(super) struct Viewers {
    leave: watch::Sender<bool>,
    looking: JoinHandle<anyhow::Result<u64>>,
}

impl Viewers {
    /// So many viewers open a page each, spread over the time between two looks.
    pub(super) fn open(port: u16, viewers: usize) -> Self {
        let (leave, left) = watch::channel(false);
        let looking = tokio::spawn(async move {
            let mut open = JoinSet::new();
            for place in 0..viewers {
                let start = EVERY.mul_f64(place as f64 / viewers as f64);
                open.spawn(watch_page(port, page(place), start, left.clone()));
            }
            let mut looks = 0;
            while let Some(ended) = open.join_next().await {
                looks += ended??;
            }
            Ok(looks)
        });
        Self { leave, looking }
    }

    /// All leave. Returns how often they have looked.
    pub(super) async fn close(self) -> anyhow::Result<u64> {
        self.leave.send_replace(true);
        self.looking.await?
    }
}

fn page(place: usize) -> &'static str {
    PAGES.get(place % PAGES.len()).copied().unwrap_or("/")
}

async fn watch_page(
    port: u16,
    page: &'static str,
    start: Duration,
    mut left: watch::Receiver<bool>,
) -> anyhow::Result<u64> {
    tokio::time::sleep(start).await;
    let mut browser = Browser::new(port);
    browser.open(page).await?;
    let mut looks = 0;
    let mut every = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            () = all_left(&mut left) => return Ok(looks),
            _ = every.tick() => {}
        }
        browser.look(page).await?;
        looks += 1;
    }
}

async fn all_left(left: &mut watch::Receiver<bool>) {
    // An error means that the viewers were dropped.
    let _ = left.wait_for(|left| *left).await;
}

/// So many viewers at once come, look at a few pages with filters of their own, and make room for the next.
/// Returns how many came.
pub(super) async fn come_and_go(port: u16, viewers: usize, span: Duration) -> anyhow::Result<u64> {
    let until = Instant::now() + span;
    let mut open = JoinSet::new();
    for place in 0..viewers {
        open.spawn(async move {
            let mut came: u64 = 0;
            while Instant::now() < until {
                let mut browser = Browser::new(port);
                for number in 0..3 {
                    let page = page(place + number);
                    browser.open(page).await?;
                    browser.look(page).await?;
                }
                // A page that no other viewer has: the server must forget it again.
                let own = format!("/tasks?key=order-{place}-{came}");
                browser.open(&own).await?;
                browser.look(&own).await?;
                came += 1;
                tokio::time::sleep(STAY).await;
            }
            anyhow::Ok(came)
        });
    }
    let mut came = 0;
    while let Some(ended) = open.join_next().await {
        came += ended??;
    }
    Ok(came)
}
