//! One process per store: an operating-system lock on `<file>.lock`. The file also names the holder.
//!
//! The kernel drops the lock with the process, however it ends, so nothing needs cleaning up after `kill -9`.
//! The file itself stays: if it were removed, two processes could lock two files of the same name.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::connection::error::OpenError;

/// More bytes than any process writes about itself.
const OWNER_MAX_BYTES: u64 = 4096;

/// The process that holds a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    pid: u32,
    address: Option<String>,
}

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Mutex<File>,
}

impl Lock {
    /// Takes the lock of a store.
    pub(crate) fn take(store: &Path, address: Option<&str>) -> Result<Self, OpenError> {
        let path = lock_path(store);
        let unwritable = |error: &std::io::Error| OpenError::io(&path, "create or open", error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| unwritable(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(store, file)),
            Err(TryLockError::Error(error)) => return Err(OpenError::io(&path, "lock", &error)),
        }
        let lock = Self { file: Mutex::new(file) };
        lock.write(address).map_err(|error| OpenError::io(&path, "write", &error))?;
        Ok(lock)
    }

    /// Writes the address at which the holder can be reached.
    pub(crate) fn write(&self, address: Option<&str>) -> std::io::Result<()> {
        let owner = Owner { pid: std::process::id(), address: address.map(str::to_owned) };
        let text = serde_json::to_vec(&owner)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&text)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // An empty file says that no process holds the store; the lock itself ends with the handle.
        let _ = file.set_len(0);
    }
}

/// The lock file of a store.
pub(crate) fn lock_path(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn in_use(store: &Path, file: File) -> OpenError {
    let mut text = String::new();
    let owner = file
        .take(OWNER_MAX_BYTES)
        .read_to_string(&mut text)
        .ok()
        .and_then(|_| serde_json::from_str::<Owner>(&text).ok());
    OpenError::InUse {
        path: store.to_owned(),
        pid: owner.as_ref().map(|owner| owner.pid),
        address: owner.and_then(|owner| owner.address),
    }
}
