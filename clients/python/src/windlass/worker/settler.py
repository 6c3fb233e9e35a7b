"""Ends of attempts on their way to the store: while one batch is on its way the next gathers.

A batch is numbered. One whose answer is in doubt is sent again unchanged, before any other and on whatever stream comes next;
the store's receipt makes that harmless. ::

    push ─► waiting ─► batch n in doubt ──answer──► acknowledged
                            ▲      │
                            └──────┘ stream lost, or the store cannot take it now: the same batch again
"""

from __future__ import annotations

from collections import deque

from windlass.v1 import workers_pb2

#: Most ends in one commit: bounds the time that other writes wait for it.
BATCH_MAX = 1000


class Settler:
    """Writes the ends of one sort: the lock of a workflow must not delay tasks that have none."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._waiting: deque[tuple[str, workers_pb2.Settlement]] = deque()
        self._in_doubt: workers_pb2.SettleBatch | None = None
        # The last number by registration: one entry more each time that a lease was lost.
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        """Ends that are not acknowledged."""
        return len(self._waiting) + (len(self._in_doubt.items) if self._in_doubt else 0)

    def push(self, worker_id: str, settlement: workers_pb2.Settlement) -> None:
        """Hands an end over."""
        self._waiting.append((worker_id, settlement))

    def next_batch(self) -> workers_pb2.SettleBatch | None:
        """The batch to send: the one in doubt, else what has gathered, of one registration and oldest first."""
        if self._in_doubt is None and self._waiting:
            worker_id = self._waiting[0][0]
            number = self._numbers[worker_id] = self._numbers.get(worker_id, 0) + 1
            batch = workers_pb2.SettleBatch(worker_id=worker_id, settler_no=self.number, batch_no=number)
            while self._waiting and self._waiting[0][0] == worker_id and len(batch.items) < BATCH_MAX:
                batch.items.append(self._waiting.popleft()[1])
            self._in_doubt = batch
        return self._in_doubt

    def acknowledge(self, batch_no: int) -> workers_pb2.SettleBatch | None:
        """The batch of this answer; none if it is not the one in doubt."""
        batch = self._in_doubt
        if batch is None or batch.batch_no != batch_no:
            return None
        self._in_doubt = None
        return batch

    def held(self, worker_id: str) -> list[workers_pb2.Held]:
        """Leases of a registration that end here: not to be handed back by the store."""
        held = [settlement.held for owner, settlement in self._waiting if owner == worker_id]
        if self._in_doubt is not None and self._in_doubt.worker_id == worker_id:
            held.extend(settlement.held for settlement in self._in_doubt.items)
        return held
