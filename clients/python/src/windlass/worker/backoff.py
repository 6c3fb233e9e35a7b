"""Pauses between tries that fail."""

from __future__ import annotations

import random


class Backoff:
    """Doubles from ``first`` to ``longest`` seconds; each pause is drawn from its upper half, so that workers that lost the
    same server do not return together."""

    def __init__(self, first: float = 0.1, longest: float = 5.0) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def next(self) -> float:
        """The next pause, in seconds."""
        pause = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, self._longest)
        return pause

    def reset(self) -> None:
        """It went well: the next failure is a first one."""
        self._next = self._first
