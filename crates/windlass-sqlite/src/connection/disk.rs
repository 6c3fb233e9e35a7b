//! Free room on the disk. Claims and settlements need room in the log too, so that the store can drain.
//! Enqueue is therefore refused once free room falls below a reserve.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use windlass_core::{Error, Result};

use crate::connection::options::Options;

/// How long a reading is used.
const READING_AGE_MAX: Duration = Duration::from_secs(1);

/// Free and total bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub free: u64,
    pub whole: u64,
}

/// Reads the free room of the disk that holds a folder.
pub(crate) fn room(folder: &Path) -> Option<Room> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(Room { free: stat.f_bavail * stat.f_frsize, whole: stat.f_blocks * stat.f_frsize })
}

/// The folder of a file; `.` for a file named without one.
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

    /// Counts bytes that are about to be written, or refuses them.
    pub(crate) fn reserve(&mut self, bytes: u64, options: &Options) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.read_at.is_none_or(|at| at.elapsed() >= READING_AGE_MAX) {
            self.room = room(folder);
            self.read_at = Some(Instant::now());
        }
        let Some(room) = &mut self.room else { return Ok(()) };
        let reserve =
            options.min_free_bytes.max(room.whole / 100 * u64::from(options.min_free_percent.min(100)));
        // Every byte takes room twice until a checkpoint: in the log and in the file.
        let bytes = bytes.saturating_mul(2);
        let left = room.free.saturating_sub(bytes);
        // Subtract all writes since the last reading, so that a burst cannot use up the reserve.
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

    /// The disk was full: assume that until the next reading.
    pub(crate) fn note_full(&mut self) {
        self.room = self.room.map(|room| Room { free: 0, ..room });
        self.read_at = Some(Instant::now());
    }
}
