//! The bulk runs of the in-memory store, and the last calls that changed something.

use async_trait::async_trait;
use windlass_core::{CallRecord, NewCall, Operators, Result, RunRow, operators::StillRuns};

use super::MemoryStore;

#[async_trait]
impl Operators for MemoryStore {
    async fn start_run(&self, text: &str) -> Result<RunRow> {
        self.run(|model, now| model.start_run(now, text))?
    }

    async fn save_run(&self, id: u64, version: u64, still: StillRuns, text: &str) -> Result<Option<RunRow>> {
        self.run(|model, now| model.save_run(now, id, version, still, text))?
    }

    async fn running_runs(&self) -> Result<Vec<RunRow>> {
        self.run(|model, now| model.running_runs(now))
    }

    async fn runs(&self, limit: u32) -> Result<Vec<RunRow>> {
        self.run(|model, now| model.runs(now, limit as usize))
    }

    async fn run(&self, id: u64) -> Result<Option<RunRow>> {
        Self::run(self, |model, now| model.bulk_run(now, id))
    }

    async fn note_calls(&self, calls: &[NewCall]) -> Result<()> {
        self.run(|model, now| model.note_calls(now, calls))
    }

    async fn calls(&self, below: Option<u64>, limit: u32) -> Result<Vec<CallRecord>> {
        self.run(|model, _| model.calls(below, limit as usize))
    }
}
