//! Figures of a queue in few letters: how sure a count is, and rates.

use windlass_core::{Depth, State};

/// What stands before a figure that is not exact.
pub(super) fn mark(depth: &Depth, state: State) -> &'static str {
    if depth.at_least.contains(state) {
        "≥ "
    } else if depth.about.contains(state) {
        "≈ "
    } else {
        ""
    }
}

/// A rate, or that it is not known yet.
pub(super) fn rate(per_s: Option<f64>) -> String {
    match per_s {
        None => "–".to_owned(),
        Some(rate) if rate < 0.05 => "0".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => super::parts::count(rate.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_shows_as_many_digits_as_matter() {
        let shown = [None, Some(0.0), Some(0.04), Some(0.5), Some(9.94), Some(1_234.4)].map(rate);
        assert_eq!(shown, ["–", "0", "0", "0.5", "9.9", "1,234"]);
    }
}
