//! A client outlives the runtimes that use it.

use tokio::runtime::{Builder, Runtime};
use windlass_core::{Store, store::Filter};
use windlass_remote::{Options, RemoteStore};

use crate::{
    harness::Served,
    push::{store, task},
};

fn threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn alone() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn add(client: &RemoteStore) {
    client.enqueue(vec![task("a")]).await.unwrap();
}

#[test]
fn a_client_outlives_the_runtime_that_created_it() {
    let here = threads();
    let store = store();
    let served = here.block_on(Served::start(store.clone()));
    let servers = served.url.parse().unwrap();
    let first = threads();
    let client = first.block_on(RemoteStore::connect(&servers, Options::default())).unwrap();
    first.block_on(add(&client));
    drop(first);
    for runtime in [threads(), alone(), threads(), alone()] {
        runtime.block_on(add(&client));
        runtime.block_on(add(&client));
    }
    here.block_on(async {
        let tasks = store.tasks(&Filter::default(), None, 100).await.unwrap();
        assert_eq!(tasks.tasks.len(), 9);
        served.end().await;
    });
}
