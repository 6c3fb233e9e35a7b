//! The attempts of tasks as the store recorded them, by the store's clock; read directly from the tables.

use anyhow::{Context, Result, ensure};

use super::Place;

/// One ended attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The task.
    pub task: String,
    /// Its job.
    pub job: Option<String>,
    /// Its workflow.
    pub workflow: Option<String>,
    /// When it was claimed.
    pub started_ms: i64,
    /// When its end was written.
    pub ended_ms: i64,
    /// Whether it ended the task in success.
    pub is_done: bool,
}

/// One attempt per line, in the order of their claims. Attempts before the last are in the task's log.
const ATTEMPTS: &str = "
SELECT a.* FROM (
  SELECT windlass.id_text(h.id), h.job, h.workflow, h.started_at, h.ended_at, h.state = 5, h.lease
  FROM windlass.history AS h WHERE h.started_at IS NOT NULL
  UNION ALL
  SELECT windlass.id_text(h.id), h.job, h.workflow, (l.entry ->> 3)::bigint, (l.entry ->> 4)::bigint, false, (l.entry ->> 1)::integer
  FROM windlass.history AS h, jsonb_array_elements(coalesce(h.log, '[]')) AS l (entry)
  WHERE l.entry ->> 3 IS NOT NULL
) AS a (id, job, workflow, started_at, ended_at, is_done, lease)
ORDER BY a.started_at, a.ended_at, a.id, a.lease";

/// Every attempt of every task that has ended, in the order of their claims.
///
/// # Errors
/// If the server reports an error.
pub fn attempts(place: &Place) -> Result<Vec<Attempt>> {
    let text = place.ask(ATTEMPTS)?;
    text.lines().map(|line| read(line).with_context(|| format!("cannot read {line:?}"))).collect()
}

fn read(line: &str) -> Option<Attempt> {
    let mut fields = line.split('|').map(str::to_owned);
    let task = fields.next()?;
    let mut name = || Some(fields.next()?).map(|name| Some(name).filter(|name| !name.is_empty()));
    let (job, workflow) = (name()?, name()?);
    let mut number = || fields.next()?.parse().ok();
    let (started_ms, ended_ms) = (number()?, number()?);
    Some(Attempt { task, job, workflow, started_ms, ended_ms, is_done: fields.next()? == "t" })
}

/// The most attempts of a job that were running at once. An attempt that ends in the millisecond in which
/// another starts comes before it.
pub fn most_running(attempts: &[Attempt], job: &str) -> usize {
    let of_job: Vec<_> = attempts.iter().filter(|attempt| attempt.job.as_deref() == Some(job)).collect();
    let at_start_of = |one: &Attempt| {
        of_job
            .iter()
            .filter(|other| other.started_ms <= one.started_ms && one.started_ms < other.ended_ms)
            .count()
    };
    of_job.iter().map(|attempt| at_start_of(attempt)).max().unwrap_or_default()
}

/// WF-ORDER as the store recorded it: attempts of a workflow's steps came one after another in the given
/// order, and each step but the last was done before the next one was claimed.
///
/// # Errors
/// If the order is broken.
pub fn check_workflow(attempts: &[Attempt], workflow: &str, steps: &[String]) -> Result<()> {
    let of_it: Vec<&Attempt> =
        attempts.iter().filter(|attempt| attempt.workflow.as_deref() == Some(workflow)).collect();
    let mut tasks: Vec<&str> = of_it.iter().map(|attempt| attempt.task.as_str()).collect();
    tasks.dedup();
    ensure!(tasks == steps, "the steps of {workflow} were claimed as {tasks:?}, not as {steps:?}");
    for pair in of_it.windows(2) {
        let [first, second] = pair else { continue };
        ensure!(first.ended_ms <= second.started_ms, "{first:?} had not ended before {second:?}");
        ensure!(first.task == second.task || first.is_done, "{first:?} was not done before {second:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(task: &str, started_ms: i64, ended_ms: i64, is_done: bool) -> Attempt {
        let (job, workflow) = (Some("j".to_owned()), Some("w".to_owned()));
        Attempt { task: task.to_owned(), job, workflow, started_ms, ended_ms, is_done }
    }

    fn steps(steps: &[&str]) -> Vec<String> {
        steps.iter().map(|step| (*step).to_owned()).collect()
    }

    #[test]
    fn a_line_is_read_with_and_without_gates() {
        let read_back = read("01A|j|w|5|7|t|1").unwrap();
        assert_eq!(read_back, attempt("01A", 5, 7, true));
        let plain = read("01A|||5|7|f|1").unwrap();
        assert_eq!((plain.job, plain.workflow, plain.is_done), (None, None, false));
    }

    #[test]
    fn attempts_one_after_another_are_in_order() {
        let attempts = [attempt("a", 1, 5, false), attempt("a", 5, 9, true), attempt("b", 9, 10, true)];
        assert_eq!((most_running(&attempts, "j"), most_running(&attempts, "other")), (1, 0));
        check_workflow(&attempts, "w", &steps(&["a", "b"])).unwrap();
        check_workflow(&attempts, "w", &steps(&["b", "a"])).unwrap_err();
    }

    #[test]
    fn attempts_at_once_are_found() {
        let attempts = [attempt("a", 1, 5, true), attempt("b", 4, 9, true)];
        assert_eq!(most_running(&attempts, "j"), 2);
        check_workflow(&attempts, "w", &steps(&["a", "b"])).unwrap_err();
    }

    #[test]
    fn a_step_after_one_that_was_not_done_is_found() {
        let attempts = [attempt("a", 1, 5, false), attempt("b", 6, 9, true)];
        check_workflow(&attempts, "w", &steps(&["a", "b"])).unwrap_err();
    }
}
