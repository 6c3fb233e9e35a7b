//! Starts a server around every store that another harness opens, and a store over gRPC that uses this
//! server.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use windlass_conformance::Harness;
use windlass_core::{Rules, Store, Timestamp};
use windlass_remote::{Options, RemoteStore};
use windlass_server::{Operations, http};

/// A server on a store.
pub struct Served {
    pub url: String,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

impl Served {
    pub async fn start(store: Arc<dyn Store>) -> Self {
        Self::with(store, http::Options::default()).await
    }

    pub async fn with(store: Arc<dyn Store>, options: http::Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(http::serve(listener, Operations::new(store), options, async {
            let _ = stopped.await;
        }));
        Self { url, stop, ended }
    }

    pub async fn end(self) {
        drop(self.stop);
        self.ended.await.unwrap().unwrap();
    }

    /// Kills it without closing its connections properly.
    pub async fn die(self) {
        self.ended.abort();
        let _ = self.ended.await;
    }

    pub async fn connect(&self) -> Arc<RemoteStore> {
        RemoteStore::connect(&self.url.parse().unwrap(), Options::default()).await.unwrap()
    }
}

/// A store over gRPC, and the server and store behind it.
struct Pair {
    remote: Arc<dyn Store>,
    served: Served,
    behind: Arc<dyn Store>,
}

/// Puts a server between the conformance suite and the stores of another harness.
pub struct Remote<H> {
    inner: H,
    pairs: Mutex<Vec<Pair>>,
}

impl<H: Harness> Remote<H> {
    pub fn new(inner: H) -> Self {
        Self { inner, pairs: Mutex::default() }
    }

    async fn serve(&self, behind: Arc<dyn Store>) -> Arc<dyn Store> {
        let served = Served::start(Arc::clone(&behind)).await;
        let remote: Arc<dyn Store> = served.connect().await;
        self.pairs.lock().unwrap().push(Pair { remote: Arc::clone(&remote), served, behind });
        remote
    }

    /// The place of a remote store. A case may wrap its store; then it is the one that was opened last.
    fn place(&self, remote: &Arc<dyn Store>) -> usize {
        let pairs = self.pairs.lock().unwrap();
        pairs.iter().position(|pair| Arc::ptr_eq(&pair.remote, remote)).unwrap_or(pairs.len() - 1)
    }
}

#[async_trait]
impl<H: Harness> Harness for Remote<H> {
    async fn open(&self, rules: Rules) -> Arc<dyn Store> {
        self.serve(self.inner.open(rules).await).await
    }

    /// Another process has its own server: several servers serve one fleet.
    async fn connect(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        let place = self.place(store);
        let behind = Arc::clone(&self.pairs.lock().unwrap()[place].behind);
        self.serve(self.inner.connect(&behind).await).await
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let place = self.place(&store);
        let pair = self.pairs.lock().unwrap().remove(place);
        store.close().await.unwrap();
        pair.served.end().await;
        Some(self.serve(self.inner.reopen(pair.behind).await?).await)
    }

    async fn settle_down(&self, store: &dyn Store) {
        self.inner.settle_down(store).await;
    }

    async fn now(&self) -> Timestamp {
        self.inner.now().await
    }

    async fn advance(&self, by: Duration) {
        self.inner.advance(by).await;
    }

    async fn jump_wall(&self, to: Timestamp) -> bool {
        self.inner.jump_wall(to).await
    }

    fn clock_is_manual(&self) -> bool {
        self.inner.clock_is_manual()
    }

    fn keeps_tokens(&self) -> bool {
        false
    }

    fn fires_as_told(&self) -> bool {
        false
    }

    fn enqueues_for_workers(&self) -> bool {
        false
    }
}
