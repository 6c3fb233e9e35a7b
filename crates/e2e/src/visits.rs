//! The requests of tasks with a job or a workflow, in the order in which the target saw them begin and end.

use std::time::Instant;

use anyhow::{Result, ensure};

/// One request.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The task that it was for.
    pub task: String,
    /// The job of the task.
    pub job: Option<String>,
    /// The workflow of the task.
    pub workflow: Option<String>,
    /// When it began.
    pub came: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Came(usize),
    Went(usize),
}

/// All requests.
#[derive(Debug, Default)]
pub struct Visits {
    visits: Vec<Visit>,
    events: Vec<Event>,
}

impl Visits {
    /// Records the beginning of a request, and returns its number.
    pub fn come(&mut self, visit: Visit) -> usize {
        let number = self.visits.len();
        self.visits.push(visit);
        self.events.push(Event::Came(number));
        number
    }

    /// Records that a request was answered, or that its client disconnected.
    pub fn go(&mut self, number: usize) {
        self.events.push(Event::Went(number));
    }

    /// The requests in the order in which they began.
    pub fn iter(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter()
    }

    /// The most requests of a sort that were open at once.
    pub fn most_open(&self, of: impl Fn(&Visit) -> bool) -> usize {
        let (mut open, mut most) = (0_usize, 0);
        for event in &self.events {
            let (Event::Came(number) | Event::Went(number)) = *event;
            if !self.visits.get(number).is_some_and(&of) {
                continue;
            }
            open = if *event == Event::Came(number) { open + 1 } else { open.saturating_sub(1) };
            most = most.max(open);
        }
        most
    }

    /// The most requests of a job that were open at once.
    pub fn most_open_of_job(&self, job: &str) -> usize {
        self.most_open(|visit| visit.job.as_deref() == Some(job))
    }

    /// WF-ORDER as seen from outside: the steps of a workflow came one after another in the given order. Each
    /// may come several times before the next one, and no two were open at once.
    ///
    /// # Errors
    /// If the order is broken.
    pub fn check_workflow(&self, workflow: &str, steps: &[String]) -> Result<()> {
        let is_of_it = |visit: &Visit| visit.workflow.as_deref() == Some(workflow);
        let mut came: Vec<&str> =
            self.iter().filter(|visit| is_of_it(visit)).map(|visit| visit.task.as_str()).collect();
        came.dedup();
        ensure!(came == steps, "the steps of {workflow} came as {came:?}, not as {steps:?}");
        ensure!(self.most_open(is_of_it) == 1, "several steps of {workflow} were open at once");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(task: &str) -> Visit {
        let (job, workflow) = (Some("j".to_owned()), Some("w".to_owned()));
        Visit { task: task.to_owned(), job, workflow, came: Instant::now() }
    }

    fn steps(steps: &[&str]) -> Vec<String> {
        steps.iter().map(|step| (*step).to_owned()).collect()
    }

    #[test]
    fn a_step_may_come_twice_before_the_next_one() {
        let mut visits = Visits::default();
        for task in ["a", "a", "b"] {
            let number = visits.come(visit(task));
            visits.go(number);
        }
        assert_eq!(visits.most_open_of_job("j"), 1);
        visits.check_workflow("w", &steps(&["a", "b"])).unwrap();
        for wrong in [&["b", "a"][..], &["a"], &["a", "b", "c"]] {
            visits.check_workflow("w", &steps(wrong)).unwrap_err();
        }
    }

    #[test]
    fn two_at_once_are_found() {
        let mut visits = Visits::default();
        let first = visits.come(visit("a"));
        let second = visits.come(visit("b"));
        visits.go(first);
        visits.go(second);
        assert_eq!((visits.most_open_of_job("j"), visits.most_open_of_job("other")), (2, 0));
        visits.check_workflow("w", &steps(&["a", "b"])).unwrap_err();
    }

    #[test]
    fn a_step_that_returns_after_the_next_one_is_detected() {
        let mut visits = Visits::default();
        for task in ["a", "b", "a"] {
            let number = visits.come(visit(task));
            visits.go(number);
        }
        visits.check_workflow("w", &steps(&["a", "b"])).unwrap_err();
    }
}
