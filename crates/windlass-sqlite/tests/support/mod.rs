//! Stores in a folder of their own, with a clock that the test moves.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tempfile::TempDir;
use windlass_conformance::{Harness, harness::START};
use windlass_core::{Clock, LeaseRef, Rules, Store, Timestamp, time::ManualClock};
use windlass_sqlite::{Durability, Location, Options, SqliteStore};

/// Opens stores in a folder of its own.
pub struct SqliteHarness {
    clock: Arc<ManualClock>,
    folder: TempDir,
    durability: Durability,
    stores: AtomicU32,
    /// Replacements of statements.
    replaced: Vec<(String, String)>,
    /// How a claim is removed from a file.
    forget: Option<fn(&Path, LeaseRef)>,
    /// The file and the rules of the last opened store.
    opened: Mutex<Option<(PathBuf, Rules)>>,
}

impl SqliteHarness {
    pub fn new(durability: Durability) -> Self {
        Self {
            clock: Arc::new(ManualClock::new(START)),
            folder: tempfile::tempdir().unwrap(),
            durability,
            stores: AtomicU32::new(0),
            replaced: Vec::new(),
            forget: None,
            opened: Mutex::new(None),
        }
    }

    /// Stores can lose a claim, as after a power cut.
    pub fn forgetting(mut self, forget: fn(&Path, LeaseRef)) -> Self {
        self.forget = Some(forget);
        self
    }

    /// Stores are opened with a replaced statement.
    pub fn replacing(mut self, original: String, text: String) -> Self {
        self.replaced.push((original, text));
        self
    }

    async fn open_file(&self, path: PathBuf, rules: Rules) -> Arc<dyn Store> {
        *self.opened.lock().unwrap() = Some((path.clone(), rules.clone()));
        let clock: Arc<dyn Clock> = self.clock.clone();
        let mut options = Options::new().rules(rules).durability(self.durability).clock(clock).min_free(0, 0);
        options.replaced.clone_from(&self.replaced);
        SqliteStore::open(&Location::File(path), options).await.unwrap()
    }
}

#[async_trait]
impl Harness for SqliteHarness {
    async fn open(&self, rules: Rules) -> Arc<dyn Store> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        self.open_file(self.folder.path().join(format!("{number}.db")), rules).await
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        store.close().await.unwrap();
        drop(store);
        let (path, rules) = self.opened.lock().unwrap().clone().unwrap();
        Some(self.open_file(path, rules).await)
    }

    async fn forget(&self, store: Arc<dyn Store>, claimed: LeaseRef) -> Option<Arc<dyn Store>> {
        let forget = self.forget?;
        store.close().await.unwrap();
        drop(store);
        let (path, rules) = self.opened.lock().unwrap().clone().unwrap();
        forget(&path, claimed);
        Some(self.open_file(path, rules).await)
    }

    async fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn jump_wall(&self, to: Timestamp) -> bool {
        self.clock.jump_wall(to);
        true
    }
}
