//! Decides the answer to a delivery. Pure: everything that it depends on is an argument.

use windlass::Outcome;

use crate::session::ledger::Answer;

/// How often a failed delivery is returned to the queue before it is rejected to the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redelivery {
    /// Deliveries after the first.
    pub max: u32,
}

/// How a handler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It returned.
    Outcome(Outcome),
    /// It panicked; the pool has logged the message.
    Panicked,
    /// It ran longer than its time limit.
    TimedOut,
    /// The body cannot be decoded, or the type is not the consumer's; the text says why without quoting the
    /// body.
    Unfit(String),
    /// It did not start, or the stop interrupted it: not a failure of the delivery.
    Unfinished,
}

impl End {
    /// The end in a word, and why it is a failure, if it is. Never the handler's own text, which may quote
    /// the body.
    pub fn told(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Outcome(Outcome::Done(_)) => ("done", None),
            Self::Outcome(Outcome::Retry { .. }) => ("retry", Some("the handler failed")),
            Self::Outcome(Outcome::Snooze(_)) => ("snooze", Some("a delivery cannot be snoozed")),
            Self::Outcome(Outcome::Dead(_)) => ("dead", Some("the delivery failed for good")),
            Self::Outcome(Outcome::Cancel(_)) => ("cancelled", None),
            Self::Outcome(Outcome::Release) | Self::Unfinished => ("released", None),
            Self::Panicked => ("panicked", Some("the handler panicked")),
            Self::TimedOut => ("timed out", Some("the handler ran longer than it may")),
            Self::Unfit(_) => ("unfit", Some("the delivery is not what the consumer takes")),
        }
    }
}

/// The answer with its reason, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer to the broker.
    pub answer: Answer,
    /// Why it is not an ack.
    pub reason: Option<String>,
}

/// Decides from the handler's end, the earlier deliveries of the message, and the consumer's policy.
pub fn decide(end: End, delivered_before: u32, policy: Redelivery) -> Decision {
    let with = |answer, reason: String| Decision { answer, reason: Some(reason) };
    let failed = |reason: String| {
        if delivered_before < policy.max {
            with(Answer::Requeue, reason)
        } else {
            with(Answer::Reject, reason)
        }
    };
    match end {
        End::Outcome(Outcome::Done(_)) => Decision { answer: Answer::Ack, reason: None },
        End::Outcome(Outcome::Retry { error, .. }) => failed(error),
        // The broker cannot delay a delivery. If it came back at once, it would go round in circles.
        End::Outcome(Outcome::Snooze(_)) => failed("a delivery cannot be snoozed".to_owned()),
        // A body that does not fit now would not fit the next time either.
        End::Outcome(Outcome::Dead(reason) | Outcome::Cancel(reason)) | End::Unfit(reason) => {
            with(Answer::Reject, reason)
        }
        End::Outcome(Outcome::Release) => with(Answer::Requeue, "handed back by its handler".to_owned()),
        End::Panicked => failed("the handler panicked".to_owned()),
        End::TimedOut => failed("the handler ran longer than it may".to_owned()),
        End::Unfinished => with(Answer::Requeue, "not finished before the stop".to_owned()),
    }
}

/// Why a delivery is not handled again, if so: it was delivered more often than its failures explain, so it
/// probably ends the processes that handle it.
pub fn refuse(delivered_before: u32, policy: Redelivery) -> Option<String> {
    // One more than the policy allows: a message is also delivered again if another one crashed the process.
    (policy.max > 0 && delivered_before > policy.max + 1)
        .then(|| format!("delivered {delivered_before} times before without an end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_acked_and_failure_is_rejected_without_requeue() {
        let none = Redelivery::default();
        assert_eq!(decide(End::Outcome(Outcome::Done(None)), 0, none).answer, Answer::Ack);
        for end in [End::Outcome(Outcome::retry("no")), End::Panicked, End::TimedOut, End::Unfit("x".into())]
        {
            let decision = decide(end.clone(), 0, none);
            assert_eq!(decision.answer, Answer::Reject, "{end:?}");
            assert!(decision.reason.is_some());
        }
    }

    #[test]
    fn failure_is_requeued_as_often_as_the_policy_says() {
        let twice = Redelivery { max: 2 };
        let answers = [0, 1, 2, 3].map(|before| decide(End::Panicked, before, twice).answer);
        assert_eq!(answers, [Answer::Requeue, Answer::Requeue, Answer::Reject, Answer::Reject]);
        assert_eq!(decide(End::Unfit("x".into()), 0, twice).answer, Answer::Reject, "it never fits");
        assert_eq!(decide(End::Outcome(Outcome::Dead("x".into())), 0, twice).answer, Answer::Reject);
    }

    #[test]
    fn unfinished_delivery_goes_back_under_every_policy() {
        assert_eq!(decide(End::Unfinished, 9, Redelivery::default()).answer, Answer::Requeue);
    }

    #[test]
    fn delivery_that_keeps_ending_processes_is_refused() {
        let policy = Redelivery { max: 2 };
        let refused = [2, 3, 4].map(|before| refuse(before, policy).is_some());
        assert_eq!(refused, [false, false, true]);
        assert_eq!(refuse(100, Redelivery::default()), None);
    }
}
