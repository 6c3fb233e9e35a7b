"""One stream to one server, from Hello to its end. ::

    worker                         server
      │ Hello(what I hold)  ─────►   │  hands back the rest
      │   ◄────────────── Welcome    │
      │ Credit(came + free) ─────►   │
      │   ◄──────────────── Tasks    │  never more than the credit
      │ Settle, Heartbeat,  ─────►   │
      │ Progress                     │
      │   ◄─── Settled, Heartbeat,   │
      │        Cancel, Drain         │

Nothing is queued here: what is to be sent is read from the engine when the stream can take it. So a server that does not read
costs no memory, and a stream that is lost loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

import grpc
import grpc.aio

from windlass import calls
from windlass.calls import Answer, Call, Request
from windlass.connection import Connection, Server
from windlass.errors import (
    NotFoundError,
    UnavailableError,
    WindlassError,
    WorkerExpiredError,
    from_aio,
    from_message,
)
from windlass.v1 import store_pb2, workers_pb2
from windlass.worker.engine import Engine
from windlass.worker.registration import Registration

log = logging.getLogger("windlass.worker")

#: How long a server may take to say Welcome, in seconds, before the next one is tried; at most half a lease.
WELCOME_LIMIT = 5.0
#: Every so many heartbeats the store's idea of what this worker holds is compared with its own.
BEATS_PER_COMPARISON = 5
#: A batch that the store cannot take now is sent again after so many seconds.
SETTLE_AGAIN = 0.5


class ServerDrains(Exception):
    """The server asked us to go elsewhere."""


class Session:
    """A stream."""

    def __init__(
        self,
        engine: Engine,
        connection: Connection,
        server: Server,
        *,
        can_move: bool,
        on_welcome: Callable[[], None],
    ) -> None:
        self._limit = min(WELCOME_LIMIT, engine.lease_ttl / 2)
        self._engine = engine
        self._connection = connection
        self._server = server
        self._can_move = can_move
        self._on_welcome = on_welcome
        #: Whether the server has asked us to go.
        self._is_drained = False
        #: Tasks that this stream has brought.
        self._came = 0
        #: What the server was last told that it may bring in all.
        self._credit = -1
        #: When the heartbeats that are not answered yet were sent.
        self._beats: deque[float] = deque()
        self._next_beat = 0.0
        #: Batches that this stream has carried, and those that it is to carry again, and when.
        self._sent: dict[int, int] = {}
        self._again: dict[int, float] = {}

    async def run(self) -> None:
        """Serves the stream until it ends.

        :raises WindlassError: why it ended.
        :raises ServerDrains: if the server asked for it.
        """
        channel = self._connection.channel(self._server)
        try:
            self._engine.rules = await self._ask(channel, calls.GET_RULES, store_pb2.GetRulesRequest())
            await self._settle_leftovers(channel)
            method = channel.stream_stream(
                calls.WORK.path,
                request_serializer=calls.WORK.request.SerializeToString,
                response_deserializer=calls.WORK.answer.FromString,
            )
            # A constrained type: what goes up is a WorkUp.
            call = cast("_Stream", method(metadata=self._connection.metadata()))
            try:
                await self._serve(channel, call)
            finally:
                call.cancel()
        finally:
            # The stream is over: whatever it still carries is sent again on the next one.
            await channel.close()

    async def _ask(self, channel: grpc.aio.Channel, call: Call[Request, Answer], request: Request) -> Answer:
        method = channel.unary_unary(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.answer.FromString,
        )
        try:
            return await method(request, timeout=self._limit, metadata=self._connection.metadata())
        except grpc.aio.AioRpcError as failure:
            raise from_aio(failure)[0] from None

    async def _settle_leftovers(self, channel: grpc.aio.Channel) -> None:
        """Ends that were reached before an earlier registration was lost. A stream speaks for its own worker only, so these go
        by call; the store takes them if nobody else has got the task."""
        engine = self._engine
        for settler in engine.settlers:
            while (batch := settler.next_batch()) is not None and not engine.is_current(batch.worker_id):
                try:
                    settled = await self._ask(channel, calls.SETTLE, batch)
                    engine.settled(settler.number, batch.batch_no, settled.fenced)
                except WindlassError as error:
                    if engine.not_settled(settler.number, batch.batch_no, error):
                        raise

    async def _serve(self, channel: grpc.aio.Channel, call: _Stream) -> None:
        registration = await self._greet(call)
        self._on_welcome()
        self._engine.stats.streams += 1
        log.info("connected: server=%s worker=%s", self._server, registration.worker_id)
        parts = [
            asyncio.ensure_future(self._read(call, registration)),
            asyncio.ensure_future(self._write(call, registration)),
            asyncio.ensure_future(self._watch(registration)),
            asyncio.ensure_future(self._compare(channel, registration)),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _greet(self, call: _Stream) -> Registration:
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(self._limit):
                with contextlib.suppress(asyncio.InvalidStateError):
                    # A stream that ended already says why when it is read.
                    await call.write(workers_pb2.WorkUp(hello=self._engine.hello()))
                first = await self._next(call)
        except TimeoutError:
            raise UnavailableError(f"{self._server} did not answer in {self._limit:g} s") from None
        if first.WhichOneof("message") != "welcome":
            raise UnavailableError(f"{self._server} did not say welcome")
        return self._engine.welcomed(first.welcome, sent_at)

    async def _next(self, call: _Stream) -> workers_pb2.WorkDown:
        try:
            message = await call.read()
        except grpc.aio.AioRpcError as failure:
            raise from_aio(failure)[0] from None
        if not isinstance(message, workers_pb2.WorkDown):
            raise UnavailableError(f"{self._server} ended the stream")
        return message

    # --- down --------------------------------------------------------------------------------------------------------

    async def _read(self, call: _Stream, registration: Registration) -> None:
        while True:
            message = await self._next(call)
            match message.WhichOneof("message"):
                case "tasks":
                    self._came += len(message.tasks.tasks)
                    for task in message.tasks.tasks:
                        self._engine.start(task)
                case "settled":
                    self._settled(message.settled)
                case "heartbeat":
                    self._renewed(message.heartbeat, registration)
                case "cancel":
                    cancel = message.cancel
                    self._engine.cancel(cancel.task_id, cancel.lease, cancel.reason)
                case "drain":
                    log.info("the server drains: server=%s reason=%s", self._server, message.drain.reason)
                    self._is_drained = True
                    self._engine.wake.set()

    def _settled(self, answer: workers_pb2.SettledBatch) -> None:
        number = answer.settler_no
        if self._sent.get(number) != answer.batch_no:
            return
        if not answer.HasField("error"):
            self._engine.settled(number, answer.batch_no, answer.settled.fenced)
            return
        error = from_message(answer.error)
        if self._engine.not_settled(number, answer.batch_no, error):
            log.warning("the store cannot take ends now: %s", error)
            self._again[number] = time.monotonic() + SETTLE_AGAIN
            self._engine.wake.set()

    def _renewed(self, answer: workers_pb2.HeartbeatAnswer, registration: Registration) -> None:
        # Answers come in the order of the heartbeats.
        sent_at = self._beats.popleft() if self._beats else None
        if answer.HasField("error"):
            error = from_message(answer.error)
            if isinstance(error, (WorkerExpiredError, NotFoundError)):
                raise WorkerExpiredError(error.message)
            log.warning("the lease could not be renewed: %s", error)
        elif sent_at is not None:
            registration.renewed(sent_at)
            self._engine.renewed(answer.renewed)

    # --- up ----------------------------------------------------------------------------------------------------------

    async def _write(self, call: _Stream, registration: Registration) -> None:
        engine = self._engine
        while True:
            engine.wake.clear()
            for message in self._due(registration):
                try:
                    await call.write(message)
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    # The reader says why the stream ended.
                    await asyncio.Event().wait()
            if engine.registration is not registration:
                raise WorkerExpiredError("the lease is over")
            if self._may_leave():
                raise ServerDrains
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._next_due() - time.monotonic())):
                    await engine.wake.wait()

    def _due(self, registration: Registration) -> Iterator[workers_pb2.WorkUp]:
        """What is to be sent now. Each is made when the one before is out, so none is older than it must be."""
        for settler in self._engine.settlers:
            batch = settler.next_batch()
            if batch is None or batch.worker_id != registration.worker_id:
                continue
            if self._is_to_send(settler.number, batch.batch_no):
                self._sent[settler.number] = batch.batch_no
                self._again.pop(settler.number, None)
                yield workers_pb2.WorkUp(settle=batch)
        if time.monotonic() >= self._next_beat:
            sent_at = time.monotonic()
            self._beats.append(sent_at)
            self._next_beat = sent_at + registration.heartbeat_every
            yield workers_pb2.WorkUp(heartbeat=self._engine.report(registration.worker_id))
        credit = self._came + (0 if self._is_drained else self._engine.free_slots())
        if credit != self._credit:
            self._credit = credit
            yield workers_pb2.WorkUp(credit=workers_pb2.Credit(tasks=credit))
        for progress in self._engine.take_progress():
            yield workers_pb2.WorkUp(progress=progress)

    def _is_to_send(self, settler_no: int, batch_no: int) -> bool:
        if self._sent.get(settler_no) != batch_no:
            return True
        return self._again.get(settler_no, float("inf")) <= time.monotonic()

    def _next_due(self) -> float:
        return min([self._next_beat, *self._again.values()])

    def _may_leave(self) -> bool:
        """Whether a server that drains has no more use for this stream. With nowhere else to go, what runs is finished here."""
        if not self._is_drained:
            return False
        is_idle = self._engine.unended == 0 and self._engine.unsettled == 0
        return is_idle or self._can_move

    async def _compare(self, channel: grpc.aio.Channel, registration: Registration) -> None:
        """Compares leases both ways: the store hands back what it says that we hold and we do not (claims of a server that could not
        undo them itself), and what it does not give us ends here (claims that it forgot in a crash)."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(registration.heartbeat_every * BEATS_PER_COMPARISON):
                    await self._engine.compare.wait()
            request = workers_pb2.ReconcileRequest(
                worker_id=registration.worker_id,
                up_to_claim_no=registration.answered_claim_no,
                in_flight=self._engine.held(),
            )
            # Zero would mean all of them, also those that are on their way.
            if request.up_to_claim_no == 0:
                self._engine.compare.clear()
                continue
            try:
                compared = await self._ask(channel, calls.RECONCILE, request)
            except WindlassError as error:
                log.debug("leases could not be compared: %s", error)
                await asyncio.sleep(registration.heartbeat_every)
                continue
            self._engine.compare.clear()
            if compared.tasks:
                log.warning("handed back tasks that were ours only in the store: tasks=%d", compared.tasks)
            self._engine.lost(compared.lost)

    async def _watch(self, registration: Registration) -> None:
        """A server that does not answer heartbeats is not waited for until the lease is lost: another one may answer."""
        limit = registration.ttl / 2
        while True:
            oldest = self._beats[0] if self._beats else time.monotonic()
            left = oldest + limit - time.monotonic()
            if left <= 0 and await self._is_silent(oldest):
                raise UnavailableError(f"{self._server} answered no heartbeat for {limit:g} s")
            await asyncio.sleep(max(0.0, left))

    async def _is_silent(self, oldest: float) -> bool:
        """The loop itself may have been held up: then the answer is there, and only has to be read."""
        await asyncio.sleep(0.1)
        return bool(self._beats) and self._beats[0] == oldest


_Stream: TypeAlias = "grpc.aio.StreamStreamCall[workers_pb2.WorkUp, workers_pb2.WorkDown]"
