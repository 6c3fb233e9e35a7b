//! Ends a handler early when the attempt was asked to end.

use windlass::{Outcome, handler::CancelReason};

/// The outcome of `work`, unless the attempt is asked to end first: then `work` is dropped.
pub(crate) async fn unless_cancelled<'a>(
    cancelled: impl Future<Output = &'a CancelReason>,
    work: impl Future<Output = Outcome>,
) -> Outcome {
    tokio::select! {
        biased;
        reason = cancelled => outcome_of(reason),
        outcome = work => outcome,
    }
}

/// A task that a user cancelled ends as cancelled; one whose worker is going away runs again elsewhere.
fn outcome_of(reason: &CancelReason) -> Outcome {
    match reason {
        CancelReason::Requested(text) => Outcome::cancel(text.clone()),
        CancelReason::Shutdown | CancelReason::LeaseLost => Outcome::Release,
        CancelReason::Deadline => Outcome::retry("the attempt's deadline passed"),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use windlass::handler::Cancellation;

    use super::*;

    #[tokio::test]
    async fn a_cancelled_attempt_ends_with_the_outcome_of_its_reason() {
        for (reason, expected) in [
            (CancelReason::Requested("not needed".into()), Outcome::cancel("not needed")),
            (CancelReason::Shutdown, Outcome::Release),
            (CancelReason::LeaseLost, Outcome::Release),
            (CancelReason::Deadline, Outcome::retry("the attempt's deadline passed")),
        ] {
            let cancellation = Cancellation::new();
            let work = unless_cancelled(cancellation.cancelled(), pending());
            let (outcome, _) = tokio::join!(work, async { cancellation.cancel(reason) });
            assert_eq!(outcome, expected);
        }
    }

    #[tokio::test]
    async fn work_without_a_cancellation_has_its_own_outcome() {
        let cancellation = Cancellation::new();
        let outcome = unless_cancelled(cancellation.cancelled(), ready(Outcome::Done(None))).await;
        assert_eq!(outcome, Outcome::Done(None));
    }
}
