//! What the engine is measured against: bare statements in a loop, on a store of the same sort.

use super::{
    ceiling_postgres, ceiling_sqlite,
    place::Room,
    rig::{HistoryArg, median},
};

/// Tasks per claim; the best is the ceiling.
pub(super) const SIZES: [usize; 3] = [50, 200, 1_000];

/// Tasks per second by claim size, over several rounds.
#[derive(Default)]
pub(super) struct Rates(Vec<[f64; SIZES.len()]>);

impl Rates {
    pub(super) fn add(&mut self, rates: [f64; SIZES.len()]) {
        self.0.push(rates);
    }

    /// The claim size with the best median, and that median.
    pub(super) fn best(&self) -> (usize, f64) {
        let medians = SIZES.iter().enumerate().map(|(i, size)| {
            (*size, median(self.0.iter().filter_map(|rates| rates.get(i).copied()).collect()))
        });
        medians.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NAN))
    }
}

/// Claim and settle in one loop, for each claim size.
pub(super) async fn drain(
    room: &Room,
    tasks: usize,
    history: HistoryArg,
) -> anyhow::Result<[f64; SIZES.len()]> {
    match room {
        Room::Folder(folder) => ceiling_sqlite::drain(&folder.path().join("bench.db"), tasks, history),
        Room::Schema { server, name } => ceiling_postgres::drain(server, name, tasks, history).await,
    }
}

/// One row, one commit, one connection, again and again; per second.
pub(super) async fn one_row_inserts(room: &Room, rows: usize) -> anyhow::Result<f64> {
    match room {
        Room::Folder(folder) => ceiling_sqlite::one_row_inserts(&folder.path().join("bench.db"), rows),
        Room::Schema { server, name } => ceiling_postgres::one_row_inserts(server, name, rows).await,
    }
}

/// The median of one-row commits that are so far apart.
pub(super) async fn commit_ms(
    room: &Room,
    commits: usize,
    spacing: std::time::Duration,
) -> anyhow::Result<f64> {
    match room {
        Room::Folder(folder) => ceiling_sqlite::commit_ms(&folder.path().join("bench.db"), commits, spacing),
        Room::Schema { server, name } => ceiling_postgres::commit_ms(server, name, commits, spacing).await,
    }
}
