//! A polite crawler: one job for each site, with one page at a time and a pause between two. Links become
//! tasks, each page once.
//!
//! `cargo run --example polite_crawler` crawls two small sites that it starts itself.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use windlass::{
    Client, Name, Outcome, State, Task, Worker, gate::JobChange, handler::BoxError, store::SharedStore,
};

#[derive(serde::Serialize, serde::Deserialize, Task)]
#[task(max_attempts = 5, timeout = "30s")]
struct CrawlPage {
    site: String,
    path: String,
}

type Web = HttpClient<HttpConnector, Empty<Bytes>>;

/// Fetches a page and enqueues its links. An error is retried later, within the same limits of the site.
async fn crawl_page(
    page: CrawlPage,
    State(web): State<Web>,
    State(client): State<Client>,
) -> Result<Outcome, BoxError> {
    let CrawlPage { site, path } = page;
    let answer = web.get(format!("http://{site}{path}").parse()?).await?;
    if answer.status().is_client_error() {
        return Ok(Outcome::dead(format!("{site}{path} answered {}", answer.status())));
    }
    let html = answer.into_body().collect().await?.to_bytes();
    let found: Vec<String> = links(&String::from_utf8_lossy(&html)).map(str::to_owned).collect();
    println!("{site}{path} links: {}", found.join(" "));
    for path in found {
        visit(&client, &site, path).await?;
    }
    Ok(Outcome::Done(None))
}

/// Enqueues a page once: the page is the key, so a second link to it, or a second attempt of this task, adds
/// nothing.
async fn visit(client: &Client, site: &str, path: String) -> windlass::Result<()> {
    let key = format!("{site}{path}");
    client.enqueue(CrawlPage { site: site.to_owned(), path }).job(site).key(key).await?;
    Ok(())
}

/// The paths that a page links to.
fn links(html: &str) -> impl Iterator<Item = &str> {
    html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next())
}

/// Crawls sites from their front pages until no page is left.
pub async fn crawl(sites: &[String], delay: Duration) -> anyhow::Result<Duration> {
    let store = windlass::open("sqlite::memory:").await?;
    let client = Client::new(store.clone());
    // The limit belongs to the job, not to the worker: it would also hold for a fleet of crawlers on one
    // PostgreSQL.
    let politeness =
        JobChange { concurrency: Some(Some(1)), delay: Some(Some(delay)), ..JobChange::default() };
    for site in sites {
        store.gates().set_job(&Name::new("job", site)?, &politeness).await?;
        visit(&client, site, "/".to_owned()).await?;
    }
    let worker = Worker::builder(store.clone())
        .state(HttpClient::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>())
        .state(client)
        .handle(crawl_page)
        .build()?;
    let (handle, start) = (worker.handle(), Instant::now());
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));
    // A page enqueues its links before it is done, so the count reaches zero only at the end.
    while unfinished(&store).await? > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = start.elapsed();
    handle.drain();
    running.await??;
    Ok(took)
}

async fn unfinished(store: &SharedStore) -> windlass::Result<u64> {
    let depths = store.lane_records().await?.into_iter().map(|lane| lane.depth);
    Ok(depths.map(|depth| depth.scheduled + depth.held + depth.ready + depth.running).sum())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sites = [local::Site::start().await?, local::Site::start().await?];
    let addresses = [sites[0].address.clone(), sites[1].address.clone()];
    let took = crawl(&addresses, Duration::from_millis(200)).await?;
    println!("{} pages in {took:.1?}", sites.iter().map(|site| site.visits().len()).sum::<usize>());
    Ok(())
}

/// A small site on this machine: five pages, with links in circles.
pub mod local {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex, PoisonError},
    };

    use http_body_util::Full;
    use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;

    const PAGES: [(&str, &str); 5] = [
        ("/", r#"<a href="/news">News</a> <a href="/about">About</a>"#),
        ("/news", r#"<a href="/">Home</a> <a href="/news/1">One</a> <a href="/news/2">Two</a>"#),
        ("/news/1", r#"<a href="/news">News</a> <a href="/news/2">Next</a>"#),
        ("/news/2", r#"<a href="/news">News</a> <a href="/news/1">Previous</a>"#),
        ("/about", r#"<a href="/">Home</a>"#),
    ];

    /// The running site.
    pub struct Site {
        /// Its `address:port`.
        pub address: String,
        visits: Arc<Mutex<Vec<String>>>,
    }

    impl Site {
        /// Listens on a free port.
        pub async fn start() -> std::io::Result<Self> {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let (address, visits) =
                (listener.local_addr()?.to_string(), Arc::<Mutex<Vec<String>>>::default());
            let seen = visits.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let seen = seen.clone();
                    let service = service_fn(move |request| {
                        std::future::ready(Ok::<_, Infallible>(answer(&request, &seen)))
                    });
                    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                }
            });
            Ok(Self { address, visits })
        }

        /// The requested paths, in order.
        pub fn visits(&self) -> Vec<String> {
            self.visits.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    fn answer(request: &Request<Incoming>, seen: &Mutex<Vec<String>>) -> Response<Full<bytes::Bytes>> {
        let path = request.uri().path().to_owned();
        let page = PAGES.iter().find(|(known, _)| *known == path);
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        let mut response = Response::new(Full::from(page.map_or("", |(_, html)| *html)));
        if page.is_none() {
            *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        }
        response
    }
}
