"""The worker's registration, and until when it may be believed."""

from __future__ import annotations

import time
from dataclasses import dataclass

#: Claims are numbered by the server, from where the worker says. Each stream gets a range of its own, so that what was claimed
#: for one that broke, and never came, is below the next range and is handed back.
_CLAIMS_PER_STREAM = 1 << 32


@dataclass
class Registration:
    """One lease of this worker, in its own monotonic time.

    The deadline counts from when a renewal was *sent*, so it passes here before it passes in the store: a worker that cannot
    renew ends its handlers before their tasks may be handed on (SELF-FENCE).
    """

    worker_id: str
    ttl: float
    valid_until: float
    #: Claims up to this number have come, or never will.
    answered_claim_no: int = 0

    def next_range(self) -> int:
        """Where the claims of the next stream start."""
        self.answered_claim_no = (self.answered_claim_no // _CLAIMS_PER_STREAM + 1) * _CLAIMS_PER_STREAM
        return self.answered_claim_no

    def came(self, claim_no: int) -> None:
        """A task of this claim has come; the rest of it may be on its way, but that of earlier ones is not."""
        self.answered_claim_no = max(self.answered_claim_no, claim_no - 1)

    def lost(self, claim_no: int) -> None:
        """A server says that whatever was claimed up to this number and has not come never will."""
        self.answered_claim_no = max(self.answered_claim_no, claim_no)

    def end(self) -> None:
        """The store says that it is over."""
        self.valid_until = time.monotonic()

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
