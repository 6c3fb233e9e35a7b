//! What a caller waits for: an answer of the writer or of a reader.

use std::{sync::Arc, time::Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;
use windlass_core::{Error, Result, usage::PoolMeter};

use crate::{
    connection::{
        call::{Class, Sync},
        tx::{Step, Tx},
    },
    store::SqliteStore,
};

impl SqliteStore {
    /// Runs work that only reads, on a reader if the store has any.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match &self.shared.readers {
            Some(readers) => {
                let (meter, asked_at) = (Arc::clone(&self.shared.meters.readers), Instant::now());
                let _use = self.shared.meters.readers.enter();
                let timed = move |conn: &Connection| {
                    meter.waited(asked_at.elapsed());
                    work(conn)
                };
                readers.read(timed).await
            }
            None => self.write(Class::Client, Sync::Read, move |tx| Ok(work(tx.conn)?)).await,
        }
    }
}

/// Wraps a request so that it records the time until it first runs.
pub(crate) fn timed<T>(
    meter: Arc<PoolMeter>,
    mut work: impl FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static,
) -> impl FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static {
    let mut asked_at = Some(Instant::now());
    move |tx| {
        if let Some(asked_at) = asked_at.take() {
            meter.waited(asked_at.elapsed());
        }
        work(tx)
    }
}

/// The writer's answer, or an error if the writer thread has ended.
pub(crate) async fn answered<T>(answer: oneshot::Receiver<Result<T>>) -> Result<T> {
    answer.await.unwrap_or_else(|_| Err(Error::Fatal("its writer thread ended".to_owned())))
}
