"""How an attempt ends other than in success: raise one of these in a handler, or return it.

Any other exception is a failure too: the task is tried again after the delay of its retry policy, until its attempts are
spent.
"""

from __future__ import annotations

__all__ = ["Cancel", "Dead", "Outcome", "Release", "Retry", "Snooze"]


class Outcome(Exception):
    """The end of an attempt."""


class Retry(Outcome):
    """It failed; try again, ``after`` so many seconds if given, else when the task's retry policy says."""

    def __init__(self, error: str = "", *, after: float | None = None) -> None:
        super().__init__(error)
        self.error = error or "the handler asked for a retry"
        self.after = after


class Snooze(Outcome):
    """Not now: call again after so many seconds. No attempt is spent."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Dead(Outcome):
    """It will never succeed: no further attempts."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Cancel(Outcome):
    """It should not be done after all: the task ends as cancelled."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Release(Outcome):
    """Hand the task back, for any worker and at once. No attempt is spent."""
