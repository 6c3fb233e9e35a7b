"""The worker's registration, and until when it may be believed."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class Registration:
    """One lease of this worker, in its own monotonic time.

    The deadline counts from when a renewal was *sent*, so it passes here before it passes in the store: a worker that cannot
    renew ends its handlers before their tasks may be handed on (SELF-FENCE).
    """

    worker_id: str
    ttl: float
    valid_until: float

    def renewed(self, sent_at: float) -> None:
        """A renewal that was sent then has been answered."""
        self.valid_until = max(self.valid_until, sent_at + self.ttl)

    @property
    def is_over(self) -> bool:
        """Whether somebody else may own its tasks."""
        return time.monotonic() >= self.valid_until

    @property
    def heartbeat_every(self) -> float:
        """So that three in a row may be lost."""
        return self.ttl / 5
