//! How much room the disk has. Below the reserve enqueue is refused, so that claims and settlements, which
//! need room in the log too, can go on and empty the store.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use windlass_core::{Error, Result};

use crate::connection::options::Options;

/// How long a reading is believed.
const READING_AGE_MAX: Duration = Duration::from_secs(1);

/// Free and whole bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub free: u64,
    pub whole: u64,
}

/// Reads the room on the disk that holds a folder.
pub(crate) fn room(folder: &Path) -> Option<Room> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(Room { free: stat.f_bavail * stat.f_frsize, whole: stat.f_blocks * stat.f_frsize })
}

/// The folder of a file, also of one named without a folder.
pub(crate) fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Watches the room that enqueue needs.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: Option<PathBuf>,
    read_at: Option<Instant>,
    room: Option<Room>,
}

impl Disk {
    /// Watches the disk that holds a file; a store in memory has none.
    pub(crate) fn new(file: Option<&Path>) -> Self {
        Self { folder: file.map(|file| folder(file).to_owned()), read_at: None, room: None }
    }

    /// Makes room for bytes about to be written, or refuses.
    pub(crate) fn reserve(&mut self, bytes: u64, options: &Options) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.read_at.is_none_or(|at| at.elapsed() >= READING_AGE_MAX) {
            self.room = room(folder);
            self.read_at = Some(Instant::now());
        }
        let Some(room) = &mut self.room else { return Ok(()) };
        let reserve =
            options.min_free_bytes.max(room.whole / 100 * u64::from(options.min_free_percent.min(100)));
        // Every byte is written twice before its room is given back: to the log, and from there to the file.
        let bytes = bytes.saturating_mul(2);
        let left = room.free.saturating_sub(bytes);
        // What is written until the next reading is taken off this one, so a burst cannot eat the reserve.
        if left < reserve || room.free < bytes {
            return Err(Error::StoreFull(format!(
                "{} MiB are free on its disk and {} MiB are kept in reserve; make room there",
                room.free >> 20,
                reserve >> 20
            )));
        }
        room.free = left;
        Ok(())
    }

    /// The disk said that it is full: believe it until the next reading.
    pub(crate) fn note_full(&mut self) {
        self.room = self.room.map(|room| Room { free: 0, ..room });
        self.read_at = Some(Instant::now());
    }
}
