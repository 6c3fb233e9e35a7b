//! What the engine is compared with: bare statements in a loop, on a store of the same kind.

pub(crate) mod postgres;
mod sqlite;

use crate::{
    place::Room,
    rig::{HistoryArg, median},
};

/// Tasks per claim; the size with the best rate is the ceiling.
pub(super) const SIZES: [usize; 3] = [50, 200, 1_000];

/// Tasks per second by claim size, over several rounds.
#[derive(Default)]
pub(super) struct Rates(Vec<[f64; SIZES.len()]>);

impl Rates {
    pub(super) fn add(&mut self, rates: [f64; SIZES.len()]) {
        self.0.push(rates);
    }

    /// The claim size with the best median, that median, and the median of the engine's ratio to it in
    /// each round. The ratio is taken within a round, because a disturbance of the machine then slows
    /// both sides alike. The ratio of two medians over all rounds would mix different disturbances.
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
    /// The engine's rate as a share of the ceiling.
    pub(super) ratio: f64,
}

/// Claims and settles in one loop, for each claim size. The largest size, which is the fastest, runs
/// right after the engine run that it is compared with.
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

/// One row, one commit, one connection, in a loop; the result is commits per second.
pub(super) async fn one_row_inserts(room: &Room, rows: usize) -> anyhow::Result<f64> {
    match room {
        Room::Folder(folder) => sqlite::one_row_inserts(&folder.path().join("bench.db"), rows),
        Room::Schema { server, name } => postgres::one_row_inserts(server, name, rows).await,
    }
}

/// The median time of one-row commits with this pause before each.
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
        // The machine runs at half speed in the second round, and at a third in the third.
        rates.add([10.0, 50.0, 120.0]);
        rates.add([5.0, 25.0, 60.0]);
        rates.add([4.0, 70.0, 40.0]);
        let against = rates.against(&[102.0, 54.0, 36.0]);
        assert_eq!((against.n, against.per_second), (1_000, 60.0));
        assert!((against.ratio - 0.9).abs() < 1e-9, "{}", against.ratio);
    }
}
