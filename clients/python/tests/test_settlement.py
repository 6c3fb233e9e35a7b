"""What becomes of an attempt: the same decisions as in ``windlass-core``."""

from __future__ import annotations

import pytest

from windlass import Cancel, Dead, Release, Retry, Snooze
from windlass.v1 import task_pb2, workers_pb2
from windlass.worker.settlement import clip, default_rules, retry_delay_ms, settle

NOW = 5_000_000


def decide(end: object, attempt: int = 1) -> workers_pb2.Settlement:
    lease = task_pb2.Lease(task_id="t", lease=4, attempt=attempt, max_attempts=3, job="j", workflow="w")
    return settle(lease, end, now_ms=NOW, spread=0.5, rules=default_rules())


def test_a_failure_is_retried_until_the_attempts_are_spent() -> None:
    assert decide(Retry("x")).retry.error == "x"
    assert decide(Retry("x"), attempt=2).HasField("retry")
    assert decide(Retry("x"), attempt=3).dead.error == "attempt 3 of 3: x"


def test_a_delay_of_its_own_wins_over_the_policy() -> None:
    assert decide(Retry("busy", after=30)).retry.due_at_ms == NOW + 30_000
    assert decide(Retry("busy")).retry.due_at_ms == NOW + 1_000


def test_the_policy_of_the_task_wins_over_that_of_the_installation() -> None:
    policy = task_pb2.RetryPolicy(base_ns=7 * 10**9, max_ns=10**12)
    lease = task_pb2.Lease(attempt=1, max_attempts=3, retry=policy)
    settled = settle(lease, Retry("x"), now_ms=NOW, spread=0.9, rules=default_rules())
    assert settled.retry.due_at_ms == NOW + 7_000


def test_every_other_end_is_what_it_says() -> None:
    assert decide(Snooze(1.5), attempt=3).snooze.due_at_ms == NOW + 1_500
    assert decide(Release(), attempt=3).HasField("release")
    assert decide(Dead("never")).dead.error == "never"
    assert decide(Cancel("no need")).cancelled.reason == "no need"
    settled = decide(None)
    assert settled.HasField("done") and not settled.done.HasField("output")
    assert (settled.held.task_id, settled.held.lease, settled.job, settled.workflow) == ("t", 4, "j", "w")


def test_an_output_that_cannot_be_kept_does_not_undo_the_success() -> None:
    large = decide(b"x" * ((64 << 10) + 1)).done
    assert not large.HasField("output") and "65537" in large.note
    odd = decide(object()).done
    assert not odd.HasField("output") and "JSON" in odd.note


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (5, 16), (10, 512), (11, 600), (4_000_000, 600)])
def test_delays_double_stay_within_the_spread_and_stop_at_the_cap(attempt: int, seconds: float) -> None:
    policy = default_rules().retry
    for spread, share in ((0.0, 0.8), (0.5, 1.0), (1.0, 1.2)):
        assert retry_delay_ms(policy, attempt, spread) == pytest.approx(seconds * 1000 * share)


def test_error_text_loses_nul_and_is_cut_at_a_character() -> None:
    assert clip("a\0b", 20) == "a\ufffdb"
    assert clip("a\ud800b", 20) == "a?b"
    cut = clip("é" * 100, 20)
    assert len(cut.encode()) <= 20 and cut.endswith("(cut)")
