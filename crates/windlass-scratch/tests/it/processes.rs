//! The processes of this machine.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// How long the system may take to end a few processes.
const END_LIMIT: Duration = Duration::from_secs(30);

/// Whether a process runs and does not just wait to be collected.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with('Z'))
}

/// Live processes whose command line holds a text.
pub fn with_argument(text: &str) -> Vec<u32> {
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text) && is_alive(*pid)
    })
    .collect()
}

/// Waits until neither the folder nor a process that names it exists.
pub fn wait_until_gone(folder: &Path) {
    let name = folder.to_str().unwrap();
    let deadline = Instant::now() + END_LIMIT;
    while folder.exists() || !with_argument(name).is_empty() {
        assert!(Instant::now() < deadline, "{name} is still there, with {:?}", with_argument(name));
        thread::sleep(Duration::from_millis(10));
    }
}
