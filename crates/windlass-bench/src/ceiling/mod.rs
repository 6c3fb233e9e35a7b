//! What the engine is measured against: bare statements in a loop, on a store of the same sort.

pub(crate) mod postgres;
mod sqlite;

use crate::{
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

    /// The claim size with the best median, that median, and the middle one of what the engine made of it in each round: what a round
    /// meets on the machine it meets twice, which two medians over all rounds need not.
    pub(super) fn against(&self, engine: &[f64]) -> Against {
        let of_size = |place: usize| self.0.iter().filter_map(move |rates| rates.get(place).copied());
        let medians =
            SIZES.iter().enumerate().map(|(place, n)| (place, *n, median(of_size(place).collect())));
        let best = medians.max_by(|a, b| a.2.total_cmp(&b.2));
        let (place, n, per_second) = best.unwrap_or((0, 0, f64::NAN));
        let ratios = engine.iter().zip(of_size(place)).map(|(engine, bare)| engine / bare).collect();
        Against { n, per_second, ratio: median(ratios) }
    }
}

/// The ceiling that the engine is measured against.
pub(super) struct Against {
    /// Tasks per claim.
    pub(super) n: usize,
    pub(super) per_second: f64,
    /// What the engine does of it.
    pub(super) ratio: f64,
}

/// Claim and settle in one loop, for each claim size; the largest, which is the fastest, right after the engine that it is compared with.
pub(super) async fn drain(
    room: &Room,
    tasks: usize,
    history: HistoryArg,
) -> anyhow::Result<[f64; SIZES.len()]> {
    match room {
        Room::Folder(folder) => sqlite::drain(&folder.path().join("bench.db"), tasks, history),
        Room::Schema { server, name } => postgres::drain(server, name, tasks, history).await,
    }
}

/// One row, one commit, one connection, again and again; per second.
pub(super) async fn one_row_inserts(room: &Room, rows: usize) -> anyhow::Result<f64> {
    match room {
        Room::Folder(folder) => sqlite::one_row_inserts(&folder.path().join("bench.db"), rows),
        Room::Schema { server, name } => postgres::one_row_inserts(server, name, rows).await,
    }
}

/// The median of one-row commits that are so far apart.
pub(super) async fn commit_ms(
    room: &Room,
    commits: usize,
    spacing: std::time::Duration,
) -> anyhow::Result<f64> {
    match room {
        Room::Folder(folder) => sqlite::commit_ms(&folder.path().join("bench.db"), commits, spacing),
        Room::Schema { server, name } => postgres::commit_ms(server, name, commits, spacing).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_compared_one_by_one_with_the_best_size() {
        let mut rates = Rates::default();
        // The machine is twice as slow in the second round, and three times as slow in the third.
        rates.add([10.0, 50.0, 120.0]);
        rates.add([5.0, 25.0, 60.0]);
        rates.add([4.0, 70.0, 40.0]);
        let against = rates.against(&[102.0, 54.0, 36.0]);
        assert_eq!((against.n, against.per_second), (1_000, 60.0));
        assert!((against.ratio - 0.9).abs() < 1e-9, "{}", against.ratio);
    }
}
