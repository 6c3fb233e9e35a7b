//! Figures of the kernel about this process.

use super::{names, text::Text};

/// Writes memory, threads, open files and live async tasks; leaves out figures that the kernel does not
/// provide.
pub(super) fn write(text: &mut Text) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        text.one(&names::ASYNC_TASKS, runtime.metrics().num_alive_tasks() as f64);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        // The folder itself is open while it is read.
        text.one(&names::OPEN_FILES, files.count().saturating_sub(1) as f64);
    }
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    if let Some(threads) = field(&status, "Threads:") {
        text.one(&names::THREADS, threads);
    }
    if let Some(kib) = field(&status, "VmRSS:") {
        text.one(&names::MEMORY, kib * 1024.0);
    }
}

fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_kernels_text() {
        let status = "Name:\twindlass\nVmRSS:\t   20480 kB\nThreads:\t7\n";
        assert_eq!(field(status, "VmRSS:"), Some(20_480.0));
        assert_eq!(field(status, "Threads:"), Some(7.0));
        assert_eq!(field(status, "VmSwap:"), None);
    }
}
