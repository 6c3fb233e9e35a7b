//! Stopping: the first Ctrl-C or SIGTERM drains and says so; the second hands running tasks back at once.

use std::{pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use windlass::{
    lifecycle::{Shutdown, Signals},
    shutdown_signal,
    worker::{DrainReport, WorkerHandle},
};

use crate::{
    output::{Output, text},
    systemd::Systemd,
};

/// Signals, each with a line that tells the user what happens next.
pub struct Announced {
    signals: Signals,
    handle: WorkerHandle,
    drain_timeout: Duration,
    out: Output,
    systemd: Arc<Systemd>,
}

impl Announced {
    /// Listens from now on. Must be called inside a runtime.
    pub fn new(handle: WorkerHandle, drain_timeout: Duration, out: Output, systemd: Arc<Systemd>) -> Self {
        Self { signals: shutdown_signal(), handle, drain_timeout, out, systemd }
    }
}

#[async_trait]
impl Shutdown for Announced {
    async fn drain(self: Pin<&mut Self>) {
        let this = self.get_mut();
        this.signals.next().await;
        // Drain before printing the line: its reader may rely on it.
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

/// The last line: how many tasks finished since the start, and what happened to the rest.
pub fn stopped(finished: u64, report: &DrainReport) -> String {
    let DrainReport { finished: late, handed_back, aborted } = report;
    let late = match late {
        0 => String::new(),
        late => format!(" ({} of them while draining)", text::count(*late)),
    };
    let stuck = match aborted {
        0 => String::new(),
        n => format!(" ({n} of them still running when the process ended)"),
    };
    let finished = text::tasks(finished);
    format!(
        "stopped: {finished} finished since the start{late}, {} handed back{stuck}, 0 lost",
        handed_back + aborted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_accounts_for_every_task() {
        let report = DrainReport::default();
        assert_eq!(
            stopped(240, &report),
            "stopped: 240 tasks finished since the start, 0 handed back, 0 lost"
        );
        let report = DrainReport { finished: 1, handed_back: 2, aborted: 3 };
        assert_eq!(
            stopped(1_000, &report),
            "stopped: 1,000 tasks finished since the start (1 of them while draining), 5 handed back (3 of them still running \
             when the process ended), 0 lost"
        );
    }
}
