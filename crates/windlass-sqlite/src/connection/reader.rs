//! A small pool of read-only connections, each on its own thread, with a bounded queue.
//!
//! Reads see the last commit and never wait for the writer. A store in memory has only one connection, so its
//! reads go through the writer.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;
use windlass_core::{Error, Result};

use crate::connection::error::OpenError;

/// Read connections: few, because each has a page cache and a long read keeps the log from shrinking.
pub(crate) const READERS: usize = 2;
/// Most reads that wait. Beyond that the caller gets an error at once (BOUNDED).
const READS_MAX: usize = 1024;
/// Page cache of a read connection.
const CACHE_KIB: i64 = 2048;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// The pool.
#[derive(Debug)]
pub(crate) struct Readers {
    jobs: Mutex<Option<SyncSender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// Opens the read connections of a file.
    pub(crate) fn open(file: &Path) -> Result<Self, OpenError> {
        let (jobs, waiting) = sync_channel::<Job>(READS_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        let mut threads = Vec::with_capacity(READERS);
        for number in 0..READERS {
            let conn = connect(file).map_err(|error| OpenError::sqlite(file, "read", &error))?;
            let waiting = Arc::clone(&waiting);
            let thread = std::thread::Builder::new()
                .name(format!("windlass-read-{number}"))
                .spawn(move || serve(&conn, &waiting))
                .map_err(|error| OpenError::io(file, "start a reader of", &error))?;
            threads.push(thread);
        }
        Ok(Self { jobs: Mutex::new(Some(jobs)), threads: Mutex::new(threads) })
    }

    /// Runs a read on the next free connection.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            let _ = reply.send(work(conn));
        });
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let jobs = jobs.ok_or_else(closed)?;
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(Error::Unavailable(format!("{READS_MAX} reads wait already; try again later")));
            }
            Err(TrySendError::Disconnected(_)) => return Err(closed()),
        }
        drop(jobs);
        answer.await.map_err(|_| Error::Unavailable("the read was lost; try again".to_owned()))?
    }

    /// Lets the reads that wait finish and closes the connections.
    pub(crate) fn close(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// The error of a closed store.
pub(crate) fn closed() -> Error {
    Error::Unavailable("the store is closed".to_owned())
}

fn serve(conn: &Connection, waiting: &Mutex<Receiver<Job>>) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(conn),
            Err(_) => return,
        }
    }
}

/// A connection that cannot write.
pub(crate) fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(
        PathBuf::from(file),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

/// The error of a failed read.
pub(crate) fn read_error(error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            Error::Fatal(error.to_string())
        }
        _ => Error::Unavailable(format!("a read failed: {error}")),
    }
}
