//! Stopping: the first Ctrl-C or SIGTERM drains and says so, the second hands back at once.

use std::{pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use windlass::{DrainReport, Shutdown, Signals, WorkerHandle, shutdown_signal};

use crate::{
    output::{Output, text},
    systemd::Systemd,
};

/// Signals that tell the user what they lead to.
pub struct Announced {
    signals: Signals,
    handle: WorkerHandle,
    drain_timeout: Duration,
    out: Output,
    systemd: Arc<Systemd>,
}

impl Announced {
    /// Listens from now on. Call it inside a runtime.
    pub fn new(handle: WorkerHandle, drain_timeout: Duration, out: Output, systemd: Arc<Systemd>) -> Self {
        Self { signals: shutdown_signal(), handle, drain_timeout, out, systemd }
    }
}

#[async_trait]
impl Shutdown for Announced {
    async fn drain(self: Pin<&mut Self>) {
        let this = self.get_mut();
        this.signals.next().await;
        // Draining starts before it is announced: who reads the line may rely on it.
        this.handle.drain();
        this.systemd.stopping();
        let running = u64::from(this.handle.status().running);
        let limit = windlass_core::why::human(this.drain_timeout).replace(".0 s", " s");
        this.out.note(format!(
            "draining: {} running, up to {limit} (Ctrl-C again to hand them back now)",
            text::tasks(running)
        ));
    }

    async fn hand_back(self: Pin<&mut Self>) {
        self.get_mut().signals.next().await;
    }
}

/// The last line.
pub fn stopped(report: &DrainReport) -> String {
    let DrainReport { finished, handed_back, aborted } = report;
    match aborted {
        0 => format!("stopped: {finished} finished, {handed_back} handed back, 0 lost"),
        n => format!(
            "stopped: {finished} finished, {} handed back ({n} of them still running when the process ended), 0 lost",
            handed_back + n
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_accounts_for_every_task() {
        let report = DrainReport { finished: 37, handed_back: 0, aborted: 0 };
        assert_eq!(stopped(&report), "stopped: 37 finished, 0 handed back, 0 lost");
        let report = DrainReport { finished: 1, handed_back: 2, aborted: 3 };
        assert!(stopped(&report).contains("5 handed back (3 of them"));
    }
}
