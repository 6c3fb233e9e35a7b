//! Finds out when a limit settled. Pure.

/// How far a settled limit may still move from its level, as a share.
const NEAR: f64 = 0.1;
/// The last part of a phase: its median is the level.
const LEVEL_PART: f64 = 1.0 / 3.0;

/// One moment of a run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(super) struct Point {
    pub(super) second: f64,
    pub(super) handler_ms: u64,
    pub(super) limit: u64,
    pub(super) running: u64,
    pub(super) waiting: u64,
}

/// Seconds from the start of a phase until the limit stays near its level, and that level; `None` if
/// there are no points.
pub(super) fn settled(points: &[Point], begin: f64, end: f64) -> Option<(f64, u64)> {
    let phase: Vec<&Point> = points.iter().filter(|point| (begin..end).contains(&point.second)).collect();
    let mut last: Vec<u64> = phase
        .iter()
        .filter(|point| point.second >= end - (end - begin) * LEVEL_PART)
        .map(|point| point.limit)
        .collect();
    last.sort_unstable();
    let level = *last.get(last.len() / 2)?;
    let allowed = (level as f64 * NEAR).ceil().max(1.0) as u64;
    let is_near = |point: &&&Point| point.limit.abs_diff(level) <= allowed;
    let near = phase.iter().rev().take_while(is_near).last();
    Some((near.map_or(end, |point| point.second) - begin, level))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn points(limits: &[u64]) -> Vec<Point> {
        let one = |(second, limit): (usize, &u64)| Point {
            second: second as f64,
            handler_ms: 10,
            limit: *limit,
            running: 0,
            waiting: 0,
        };
        limits.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_limit_has_settled_when_it_stays_near_its_level() {
        let series = points(&[4, 8, 16, 20, 21, 20, 19, 20, 20]);
        let (after, level) = settled(&series, 0.0, 9.0).unwrap();
        assert_eq!((after.to_string().as_str(), level), ("3", 20));
    }

    #[test]
    fn a_limit_settles_only_after_its_last_swing() {
        let series = points(&[20, 20, 40, 20, 20, 40, 20, 20, 20]);
        assert_eq!(settled(&series, 0.0, 9.0).unwrap().0.to_string(), "6");
        assert!(settled(&points(&[1, 2]), 5.0, 9.0).is_none());
    }
}
