//! The ended attempts of a task as stores keep them in its row: compact JSON, one short array per attempt.
//!
//! Most tasks have no log: the columns of the history row describe a single attempt.

use crate::{
    id::WorkerId,
    task::{ATTEMPT_RECORDS_MAX, AttemptRecord, AttemptResult},
    time::Timestamp,
};

/// attempt, lease, worker, started, ended, result, error.
type Entry = (u32, u32, Option<i64>, Option<i64>, i64, u8, Option<String>);

/// Codes of results as they are stored.
const RESULTS: [(u8, AttemptResult); 8] = [
    (0, AttemptResult::Done),
    (1, AttemptResult::Retry),
    (2, AttemptResult::Snoozed),
    (3, AttemptResult::Released),
    (4, AttemptResult::Crashed),
    (5, AttemptResult::Cancelled),
    (6, AttemptResult::Dead),
    (7, AttemptResult::Redriven),
];

/// The log with one more attempt. Above the limit, the oldest attempts are dropped.
pub fn append(log: Option<&str>, record: AttemptRecord) -> String {
    let mut entries = parse(log);
    entries.push((
        record.attempt,
        record.lease,
        record.worker.map(|worker| worker.0),
        record.started_at.map(Timestamp::as_ms),
        record.ended_at.as_ms(),
        RESULTS.iter().find(|(_, result)| *result == record.result).map_or(u8::MAX, |(code, _)| *code),
        record.error,
    ));
    let surplus = entries.len().saturating_sub(ATTEMPT_RECORDS_MAX);
    entries.drain(..surplus);
    serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned())
}

/// The attempts of a log, oldest first.
pub fn read(log: Option<&str>) -> Vec<AttemptRecord> {
    let entries = parse(log).into_iter();
    entries
        .filter_map(|(attempt, lease, worker, started_at, ended_at, code, error)| {
            let (_, result) = RESULTS.into_iter().find(|(known, _)| *known == code)?;
            Some(AttemptRecord {
                attempt,
                lease,
                worker: worker.map(WorkerId),
                started_at: started_at.map(Timestamp::from_ms),
                ended_at: Timestamp::from_ms(ended_at),
                result,
                error,
            })
        })
        .collect()
}

fn parse(log: Option<&str>) -> Vec<Entry> {
    log.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_attempts_are_kept_and_read_back() {
        let record = |n: u32| AttemptRecord {
            attempt: n,
            lease: n,
            worker: Some(WorkerId(7)),
            started_at: Some(Timestamp::from_ms(5)),
            ended_at: Timestamp::from_ms(6),
            result: AttemptResult::Snoozed,
            error: Some(format!("\"{n}\"")),
        };
        let mut log = None;
        for n in 0..60 {
            log = Some(append(log.as_deref(), record(n)));
        }
        let attempts = read(log.as_deref());
        assert_eq!(attempts, (10..60).map(record).collect::<Vec<_>>());
    }
}
