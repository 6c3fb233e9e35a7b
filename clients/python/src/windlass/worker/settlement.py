"""From what a handler said to what the store writes: one pure function, the same decision as in every other worker."""

from __future__ import annotations

from windlass import payload as payloads
from windlass.errors import InvalidError
from windlass.outcome import Cancel, Dead, Outcome, Release, Retry, Snooze
from windlass.v1 import store_pb2, task_pb2, workers_pb2

#: The marks of a text that was cut.
_CUT = "… (cut)"
#: More doublings than any longest delay needs.
_DOUBLINGS_MAX = 40


def default_rules() -> store_pb2.Rules:
    """The numbers of an installation that says nothing else."""
    return store_pb2.Rules(
        output_max_bytes=64 << 10,
        error_max_bytes=4 << 10,
        retry=task_pb2.RetryPolicy(base_ns=10**9, max_ns=600 * 10**9, jitter_percent=20),
    )


def settle(
    lease: task_pb2.Lease, end: object, *, now_ms: int, spread: float, rules: store_pb2.Rules
) -> workers_pb2.Settlement:
    """Decides what becomes of an attempt.

    :param end: an :class:`~windlass.Outcome`, or what the handler returned in success.
    :param now_ms: a reading of the store's clock.
    :param spread: a draw from 0 to 1, so that tasks that failed together do not return together.
    """
    settlement = workers_pb2.Settlement(
        held=workers_pb2.Held(task_id=lease.task_id, lease=lease.lease), job=lease.job, workflow=lease.workflow
    )
    match end:
        case Retry():
            _fail(settlement, lease, end, now_ms, spread, rules)
        case Snooze():
            settlement.snooze.due_at_ms = now_ms + round(max(0.0, end.seconds) * 1000)
        case Dead():
            settlement.dead.error = clip(end.error, rules.error_max_bytes)
        case Cancel():
            settlement.cancelled.reason = clip(end.reason, rules.error_max_bytes)
        case Release():
            settlement.release.SetInParent()
        case Outcome():
            _fail(settlement, lease, Retry(f"unknown outcome {type(end).__name__}"), now_ms, spread, rules)
        case _:
            _succeed(settlement, end, rules)
    return settlement


def _succeed(settlement: workers_pb2.Settlement, output: object, rules: store_pb2.Rules) -> None:
    """An output that cannot be kept does not undo the success."""
    settlement.done.SetInParent()
    if output is None:
        return
    try:
        encoded = payloads.encode(output)
    except InvalidError as error:
        settlement.done.note = clip(f"output dropped: {error.message}", rules.error_max_bytes)
        return
    if len(encoded.data) > rules.output_max_bytes:
        size, most = len(encoded.data), rules.output_max_bytes
        settlement.done.note = f"output of {size} bytes dropped: over output_max_bytes ({most})"
    else:
        settlement.done.output.CopyFrom(encoded)


def _fail(
    settlement: workers_pb2.Settlement,
    lease: task_pb2.Lease,
    end: Retry,
    now_ms: int,
    spread: float,
    rules: store_pb2.Rules,
) -> None:
    """A failure after the last granted attempt is the task's end."""
    if lease.attempt >= lease.max_attempts:
        text = f"attempt {lease.attempt} of {lease.max_attempts}: {end.error}"
        settlement.dead.error = clip(text, rules.error_max_bytes)
        return
    if end.after is not None:
        delay_ms = max(0.0, end.after) * 1000
    else:
        policy = lease.retry if lease.HasField("retry") else rules.retry
        delay_ms = retry_delay_ms(policy, lease.attempt, spread)
    settlement.retry.due_at_ms = now_ms + round(delay_ms)
    settlement.retry.error = clip(end.error, rules.error_max_bytes)


def retry_delay_ms(policy: task_pb2.RetryPolicy, attempt: int, spread: float) -> float:
    """The delay after attempt number ``attempt`` (from 1) failed: doubled each time, at most the policy's longest."""
    doublings = min(max(attempt - 1, 0), _DOUBLINGS_MAX)
    delay_ms = float(min(policy.base_ns << doublings, policy.max_ns)) / 1e6
    jitter = min(policy.jitter_percent, 100) / 100
    return delay_ms * (1 - jitter + 2 * jitter * spread)


def clip(text: str, max_bytes: int) -> str:
    """Error text as every store can keep it: no NUL, no lone surrogates, not too long, cut at a character and marked."""
    data = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    if len(data) > max_bytes:
        data = data[: max(0, max_bytes - len(_CUT.encode()))]
        return data.decode("utf-8", "ignore") + _CUT
    return data.decode()
