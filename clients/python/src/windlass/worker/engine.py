"""What a worker has in hand, whichever stream it is on: its registration, its slots, its attempts, the ends that wait to be
written. Knows nothing of gRPC.

Everything here happens on the worker's event loop, so there are no locks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windlass.errors import WindlassError, is_passing
from windlass.outcome import Cancel, Dead, Release, Retry, Snooze
from windlass.v1 import store_pb2, task_pb2, workers_pb2
from windlass.worker import memory, settlement
from windlass.worker.attempt import CANCEL_GRACE, Attempt, Handler
from windlass.worker.context import CancelReason
from windlass.worker.registration import Registration
from windlass.worker.settler import Settler

log = logging.getLogger("windlass.worker")

#: A kind that came although nothing handles it here is left to others for so long, in seconds.
_UNKNOWN_KIND_PAUSE = 5.0


@dataclass
class Stats:
    """What a worker has done since it started."""

    #: Tasks that came.
    claimed: int = 0
    done: int = 0
    #: Attempts that failed: again later, or never.
    failed: int = 0
    #: Tasks handed back without spending an attempt.
    released: int = 0
    #: Ends that the store refused, because the lease was no longer held.
    fenced: int = 0
    #: How often the lease may have been lost.
    self_fences: int = 0
    #: Streams that were opened.
    streams: int = 0


class Engine:
    """The state of a worker."""

    def __init__(
        self, handlers: Mapping[str, Handler], queues: Sequence[str], slots: int, lease_ttl: float, version: str
    ) -> None:
        self.slots = slots
        self.stats = Stats()
        self.rules: store_pb2.Rules = settlement.default_rules()
        self.registration: Registration | None = None
        #: There is a registration.
        self.registered = asyncio.Event()
        self.is_draining = False
        #: Something is to be sent.
        self.wake = asyncio.Event()
        #: An attempt has ended, or an end was acknowledged.
        self.changed = asyncio.Event()
        #: The store may have forgotten claims. The worker compares its leases with the store at once.
        self.compare = asyncio.Event()
        #: The epoch of the store's leases, as the last heartbeat told it.
        self._epoch: int | None = None
        #: Plain tasks, and steps of workflows.
        self.settlers = (Settler(0), Settler(1))
        self._handlers = handlers
        self._queues = queues
        self.lease_ttl = lease_ttl
        self._version = version
        self._attempts: dict[tuple[str, int], Attempt] = {}
        #: What keeps the tasks of asyncio alive; an attempt leaves it when its handler has ended.
        self._running: set[asyncio.Task[None]] = set()
        self._progress: dict[tuple[str, int], workers_pb2.ProgressRequest] = {}
        self._loop = asyncio.get_running_loop()

    # --- what the server is told -------------------------------------------------------------------------------------

    def hello(self) -> workers_pb2.Hello:
        """Who is there, and what it still holds."""
        register = workers_pb2.RegisterRequest(
            host=socket.gethostname(),
            pid=os.getpid(),
            version=self._version,
            kinds=sorted(self._handlers),
            queues=self._queues,
            max_capacity=self.slots,
            lease_ttl_ms=round(self.lease_ttl * 1000),
        )
        hello = workers_pb2.Hello(register=register)
        if self.registration is not None:
            hello.worker_id = self.registration.worker_id
            hello.up_to_claim_no = self.registration.next_range()
            hello.in_flight.extend(self.held())
        return hello

    def held(self) -> list[workers_pb2.Held]:
        """The leases of the registration that is in force: of what runs, and of what waits to be written."""
        if self.registration is None:
            return []
        worker_id = self.registration.worker_id
        held = [
            workers_pb2.Held(task_id=attempt.lease.task_id, lease=attempt.lease.lease)
            for attempt in self._attempts.values()
            if attempt.lease.worker_id == worker_id
        ]
        for settler in self.settlers:
            held.extend(settler.held(worker_id))
        return held

    def report(self, worker_id: str) -> workers_pb2.HeartbeatRequest:
        """How this worker stands."""
        return workers_pb2.HeartbeatRequest(
            worker_id=worker_id,
            available_capacity=self.free_slots(),
            max_capacity=self.slots,
            memory_usage=memory.usage(),
            in_flight=len(self._running),
            draining=self.is_draining,
        )

    def free_slots(self) -> int:
        """How many tasks could start now. None while as many ends as slots wait to be written (BOUNDED)."""
        if self.is_draining or self.unsettled >= self.slots:
            return 0
        return max(0, self.slots - len(self._running))

    def take_progress(self) -> list[workers_pb2.ProgressRequest]:
        """Progress that has not been sent: at most one text per attempt."""
        taken, self._progress = list(self._progress.values()), {}
        return taken

    # --- what the server says ----------------------------------------------------------------------------------------

    def welcomed(self, welcome: workers_pb2.Welcome, sent_at: float) -> Registration:
        """The server knows us, perhaps under a new name; the lease counts from when we asked."""
        known = self.registration
        if known is not None and known.worker_id == welcome.worker_id:
            # Whether this was a renewal is the server's affair; the heartbeat that follows certainly is one.
            known.lost(welcome.claim_no)
            self.lost(welcome.lost)
            return known
        if known is not None:
            self.fence("the server gave us another id")
        ttl = welcome.lease_ttl_ms / 1000
        self.registration = Registration(welcome.worker_id, ttl, sent_at + ttl)
        self.registration.lost(welcome.claim_no)
        self.registered.set()
        self.wake.set()
        return self.registration

    def start(self, claimed: task_pb2.ClaimedTask) -> None:
        """Starts a task that came, at once; what cannot start is handed back."""
        self.stats.claimed += 1
        registration = self.registration
        lease = claimed.lease
        if registration is None or lease.worker_id != registration.worker_id:
            # It was claimed for a registration that is no more; the store knows that as well.
            return
        registration.came(claimed.claim_no)
        if (lease.task_id, lease.lease) in self._attempts:
            # It came again, over another stream: it runs already.
            return
        handler = self._handlers.get(claimed.lane.kind)
        attempt = Attempt(claimed, handler or _nobody, registration, self._note_progress)
        if handler is None:
            log.error("no handler for the kind of a task: task=%s kind=%s", lease.task_id, claimed.lane.kind)
            self._settle(attempt, Snooze(_UNKNOWN_KIND_PAUSE))
        elif self.is_draining or len(self._running) >= self.slots:
            self._settle(attempt, Release())
        else:
            self._attempts[attempt.id] = attempt
            task = asyncio.ensure_future(self._execute(attempt))
            self._running.add(task)
            task.add_done_callback(self._slot_freed)

    def cancel(self, task_id: str, lease: int, reason: str) -> None:
        """Somebody asked an attempt to end."""
        attempt = self._attempts.get((task_id, lease))
        if attempt is not None:
            attempt.cancel(CancelReason.REQUESTED, reason)

    def lost(self, leases: Iterable[workers_pb2.Held]) -> None:
        """The store does not give us these leases: their handlers end now, and nothing of theirs is settled. Those that ended already
        wait to be written, and the store refuses what is not ours."""
        keys = [(held.task_id, held.lease) for held in leases]
        lost = [self._attempts[key] for key in keys if key in self._attempts]
        for attempt in lost:
            self.stats.fenced += 1
            log.error("lease lost, handler cancelled: task=%s kind=%s", attempt.lease.task_id, attempt.kind)
            attempt.cancel(CancelReason.LEASE_LOST)

    def renewed(self, answer: workers_pb2.HeartbeatResponse) -> None:
        """What the answer to a heartbeat brought along."""
        for cancel in answer.cancels:
            self.cancel(cancel.task_id, cancel.lease, cancel.reason)
        epoch = answer.lease_epoch if answer.HasField("lease_epoch") else None
        if epoch != self._epoch:
            self._epoch = epoch
            self.compare.set()
        if answer.HasField("max_capacity") and answer.max_capacity != self.slots:
            log.info("slots set to %d, were %d", answer.max_capacity, self.slots)
            self.slots = answer.max_capacity
            self.wake.set()

    def settled(self, settler_no: int, batch_no: int, fenced: Sequence[str]) -> None:
        """A batch has been written."""
        if settler_no >= len(self.settlers) or self.settlers[settler_no].acknowledge(batch_no) is None:
            return
        self.stats.fenced += len(fenced)
        for task_id in fenced:
            log.warning("the lease was lost before the end was written: task=%s", task_id)
        self.wake.set()
        self.changed.set()

    def not_settled(self, settler_no: int, batch_no: int, error: WindlassError) -> bool:
        """A batch was refused. Answers whether it is to be sent again."""
        if is_passing(error):
            return True
        if settler_no < len(self.settlers):
            batch = self.settlers[settler_no].acknowledge(batch_no)
            if batch is not None:
                log.error("ends of %d tasks were refused: %s", len(batch.items), error)
                self.stats.fenced += len(batch.items)
        self.wake.set()
        self.changed.set()
        return False

    # --- what happens here -------------------------------------------------------------------------------------------

    def fence(self, why: str) -> None:
        """Gives up every lease of this registration: handlers end now, and nothing of theirs is settled."""
        registration, self.registration = self.registration, None
        if registration is None:
            return
        self.registered.clear()
        lost = [attempt for attempt in self._attempts.values() if attempt.registration is registration]
        self.stats.self_fences += 1
        log.error(
            "lease lost, handlers cancelled: worker=%s tasks=%d why=%s", registration.worker_id, len(lost), why
        )
        for attempt in lost:
            attempt.cancel(CancelReason.LEASE_LOST)
        self.wake.set()

    def fence_if(self, registration: Registration, why: str) -> None:
        """The same, if it is still this one that is in force."""
        if self.registration is registration:
            self.fence(why)

    def cancel_all(self, reason: CancelReason) -> None:
        """Asks everything that runs to end."""
        for attempt in list(self._attempts.values()):
            attempt.cancel(reason)

    async def close(self) -> None:
        """Waits for the handlers of attempts that were asked to end; not for those that did not."""
        if self._attempts:
            await asyncio.wait(self._running, timeout=CANCEL_GRACE)
        for task in self._running:
            task.cancel()

    def is_current(self, worker_id: str) -> bool:
        """Whether this is the registration that is in force."""
        return self.registration is not None and self.registration.worker_id == worker_id

    @property
    def unsettled(self) -> int:
        """Ends that are not acknowledged."""
        return sum(len(settler) for settler in self.settlers)

    @property
    def unended(self) -> int:
        """Attempts without an end."""
        return len(self._attempts)

    async def _execute(self, attempt: Attempt) -> None:
        end, left = await attempt.run()
        self._attempts.pop(attempt.id, None)
        self._progress.pop(attempt.id, None)
        self._settle(attempt, end)
        if left is not None:
            log.warning("a handler goes on although it was asked to end: task=%s", attempt.lease.task_id)
            # Its slot is taken for as long as it runs.
            await asyncio.wait([left])

    def _settle(self, attempt: Attempt, end: object) -> None:
        if attempt.is_lost:
            # The clock may be further than the timer that watches it: an event loop can be held up.
            if attempt.registration.is_over and self.registration is attempt.registration:
                self.fence("no heartbeat was answered in time")
            return
        self._count(attempt, end)
        settled = settlement.settle(
            attempt.lease, end, now_ms=attempt.store_now_ms(), spread=random.random(), rules=self.rules
        )
        settler = self.settlers[1 if attempt.lease.workflow else 0]
        settler.push(attempt.lease.worker_id, settled)
        self.wake.set()
        self.changed.set()

    def _count(self, attempt: Attempt, end: object) -> None:
        lease = attempt.lease
        match end:
            case Retry() | Dead():
                self.stats.failed += 1
                # The text of an error may hold what the payload holds: it is kept with the task, not in a log.
                log.warning(
                    "attempt failed: task=%s kind=%s attempt=%d of %d",
                    lease.task_id,
                    attempt.kind,
                    lease.attempt,
                    lease.max_attempts,
                )
            case Snooze() | Release():
                self.stats.released += 1
            case Cancel():
                log.info("attempt cancelled: task=%s kind=%s", lease.task_id, attempt.kind)
            case _:
                self.stats.done += 1

    def _slot_freed(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an attempt ended without an end: %s", type(error).__name__)
        self.wake.set()
        self.changed.set()

    def _note_progress(self, attempt: Attempt, text: str) -> None:
        request = workers_pb2.ProgressRequest(
            worker_id=attempt.lease.worker_id,
            task_id=attempt.lease.task_id,
            lease=attempt.lease.lease,
            progress=text,
        )

        def note() -> None:
            if attempt.id in self._attempts:
                self._progress[attempt.id] = request
                self.wake.set()

        self._loop.call_soon_threadsafe(note)


def _nobody(_context: object) -> None:
    """Stands where there is no handler; never called."""
