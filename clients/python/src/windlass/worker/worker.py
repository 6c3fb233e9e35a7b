"""A worker: handlers by kind, and the loop that keeps a stream to one of the servers open."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from windlass import calls
from windlass.connection import Connection
from windlass.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    UnsupportedError,
    WindlassError,
    WorkerExpiredError,
)
from windlass.v1 import workers_pb2
from windlass.version import VERSION
from windlass.worker.attempt import CANCEL_GRACE, Handler
from windlass.worker.backoff import Backoff
from windlass.worker.context import CancelReason
from windlass.worker.engine import Engine, Stats
from windlass.worker.keeper import Keeper
from windlass.worker.session import ServerDrains, Session

__all__ = ["Worker"]

log = logging.getLogger("windlass.worker")

#: How long a worker that has drained waits for its last ends to be written, in seconds.
FLUSH_LIMIT = 10.0
#: How long the farewell may take, in seconds: without it the registration runs out by itself.
RETIRE_LIMIT = 2.0

_Handler = TypeVar("_Handler", bound=Handler)


class Worker:
    """Runs tasks of the kinds that it has handlers for.

    :param servers: and the other parameters of a connection: see :class:`~windlass.connection.Connection`.
    :param slots: how many tasks run at once.
    :param queues: the queues that it serves; all of them if none is named.
    :param lease_ttl: how many seconds the servers believe it alive after its last heartbeat. A task of a worker that died runs
        again after about so long.
    :param drain_timeout: how many seconds tasks may take to end when the worker stops; after that they are handed back
        without spending an attempt.
    """

    def __init__(
        self,
        servers: str | Sequence[str] | None = None,
        *,
        slots: int = 10,
        queues: Sequence[str] = (),
        lease_ttl: float = 10.0,
        drain_timeout: float = 30.0,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        cert_file: str | os.PathLike[str] | None = None,
        key_file: str | os.PathLike[str] | None = None,
        insecure: bool = False,
    ) -> None:
        if slots < 1:
            raise ValueError("a worker has at least one slot")
        if isinstance(queues, str):
            raise TypeError("queues is a list of names")
        self._connection = Connection.create(
            servers, token=token, ca_file=ca_file, cert_file=cert_file, key_file=key_file, insecure=insecure
        )
        self._slots = slots
        self._queues = tuple(queues)
        self._lease_ttl = lease_ttl
        self._drain_timeout = drain_timeout
        self._handlers: dict[str, Handler] = {}
        self._server_index = 0
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain_asked = 0
        self._drain = asyncio.Event()
        self._drain_now = asyncio.Event()
        self._connected = asyncio.Event()

    def handler(self, kind: str) -> Callable[[_Handler], _Handler]:
        """Makes a function the handler of a kind: ``@worker.handler("email")``.

        It is called with a :class:`~windlass.Context`. A coroutine function runs on the worker's event loop and must not block
        it; a plain function runs in a thread of its own. What it returns (JSON values, or ``bytes``) is kept as the task's
        output. To end otherwise it raises or returns an :class:`~windlass.Outcome`.
        """
        if kind in self._handlers:
            raise ValueError(f"the kind {kind!r} has a handler already")

        def register(function: _Handler) -> _Handler:
            self._handlers[kind] = function
            return function

        return register

    @property
    def stats(self) -> Stats:
        """What it has done since it started."""
        return self._engine.stats if self._engine is not None else Stats()

    @property
    def worker_id(self) -> str | None:
        """Its id, while its lease is in force."""
        registration = self._engine.registration if self._engine is not None else None
        return registration.worker_id if registration is not None else None

    async def connected(self) -> None:
        """Waits until a server has said welcome."""
        await self._connected.wait()

    def drain(self) -> None:
        """Stops taking tasks, lets those that run end, and then ends :meth:`run`. A second call hands back at once what still
        runs. May be called from any thread and from signal handlers."""

        def ask() -> None:
            self._drain_asked += 1
            (self._drain if self._drain_asked == 1 else self._drain_now).set()
            if self._engine is not None:
                self._engine.is_draining = True
                self._engine.wake.set()

        if self._loop is None:
            ask()
        else:
            self._loop.call_soon_threadsafe(ask)

    def run_forever(self) -> None:
        """Runs in an event loop of its own until it is drained: what a script calls last."""
        asyncio.run(self.run())

    async def run(self, *, handle_signals: bool = True) -> None:
        """Runs until it is drained. In the main thread SIGTERM and SIGINT drain it, and a second one shortens that.

        Cancelling this ends the worker at once: its tasks run again when its lease is over.

        :raises WindlassError: if the servers refuse it: a missing token, for example. Servers that cannot be reached are
            tried again for ever.
        """
        if self._engine is not None:
            raise RuntimeError("a worker runs once")
        if not self._handlers:
            raise ValueError("a worker needs a handler")
        self._loop = asyncio.get_running_loop()
        self._engine = engine = Engine(
            self._handlers, self._queues, self._slots, self._lease_ttl, f"python {VERSION}"
        )
        engine.is_draining = self._drain.is_set()
        with self._signals(handle_signals):
            keeper = Keeper(engine, self._connection)
            keeper.start()
            serving = asyncio.ensure_future(self._serve(engine))
            fencing = asyncio.ensure_future(_watch_lease(engine))
            ending = asyncio.ensure_future(self._drained(engine))
            try:
                await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
                if serving.done():
                    serving.result()
                ending.result()
            finally:
                keeper.stop()
                for part in (serving, fencing, ending):
                    part.cancel()
                await asyncio.gather(serving, fencing, ending, return_exceptions=True)
                engine.cancel_all(CancelReason.LEASE_LOST)
                await engine.close()
        await self._retire(engine)

    # --- the stream --------------------------------------------------------------------------------------------------

    async def _serve(self, engine: Engine) -> None:
        """Keeps a stream open, at one server after another."""
        backoff = Backoff()

        def on_welcome() -> None:
            self._connected.set()
            backoff.reset()

        while True:
            servers = self._connection.servers
            server = servers[self._server_index % len(servers)]
            session = Session(
                engine, self._connection, server, can_move=len(servers) > 1, on_welcome=on_welcome
            )
            try:
                await session.run()
            except ServerDrains:
                log.info("leaving a server that drains: server=%s", server)
            except (WorkerExpiredError, NotFoundError) as error:
                # Final: what we held under that name may be somebody else's.
                engine.fence(str(error))
            except WindlassError as error:
                refused = (UnauthorizedError, ForbiddenError, UnsupportedError, InvalidError)
                if isinstance(error, refused) and not self._connected.is_set():
                    raise
                log.warning("stream lost: server=%s why=%s", server, error)
            self._server_index += 1
            await asyncio.sleep(backoff.next())

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _drained(self, engine: Engine) -> None:
        """Ends when everything has ended and is written, or the deadline has passed."""
        await self._drain.wait()
        log.info("draining: tasks=%d", engine.unended)
        at_once = asyncio.ensure_future(self._drain_now.wait())
        try:
            deadline = time.monotonic() + self._drain_timeout
            if not await _until(engine, lambda: engine.unended == 0, deadline, at_once):
                log.warning("handing back what still runs: tasks=%d", engine.unended)
                engine.cancel_all(CancelReason.SHUTDOWN)
                await _until(engine, lambda: engine.unended == 0, time.monotonic() + CANCEL_GRACE + 1.0)
            if not await _until(engine, lambda: engine.unsettled == 0, time.monotonic() + FLUSH_LIMIT):
                log.error("ends that could not be written: tasks=%d; they run again", engine.unsettled)
        finally:
            at_once.cancel()

    async def _retire(self, engine: Engine) -> None:
        """Says farewell, so that what is left does not wait for the lease to run out."""
        registration = engine.registration
        if registration is None:
            return
        servers = self._connection.servers
        async with self._connection.channel(servers[self._server_index % len(servers)]) as channel:
            method = channel.unary_unary(
                calls.RETIRE.path,
                request_serializer=calls.RETIRE.request.SerializeToString,
                response_deserializer=calls.RETIRE.answer.FromString,
            )
            request = workers_pb2.RetireRequest(worker_id=registration.worker_id)
            try:
                await method(request, timeout=RETIRE_LIMIT, metadata=self._connection.metadata())
            except grpc.aio.AioRpcError as failure:
                log.info("could not say farewell: %s", failure.code().name.lower())

    @contextlib.contextmanager
    def _signals(self, is_wanted: bool) -> Iterator[None]:
        if not is_wanted or threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        handled = (signal.SIGTERM, signal.SIGINT)
        for number in handled:
            loop.add_signal_handler(number, self.drain)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)


async def _watch_lease(engine: Engine) -> None:
    """Gives up the leases when they may be over by our own clock (SELF-FENCE)."""
    while True:
        await engine.registered.wait()
        registration = engine.registration
        if registration is None:
            continue
        if registration.is_over:
            engine.fence("no heartbeat was answered in time")
        else:
            await asyncio.sleep(max(0.0, registration.valid_until - time.monotonic()))


async def _until(
    engine: Engine,
    is_so: Callable[[], bool],
    deadline: float,
    at_once: asyncio.Future[Any] | None = None,
) -> bool:
    """Waits until something is so; not beyond the deadline, nor when ``at_once`` comes."""
    while not is_so():
        left = deadline - time.monotonic()
        if left <= 0 or (at_once is not None and at_once.done()):
            return False
        engine.changed.clear()
        change = asyncio.ensure_future(engine.changed.wait())
        watched: list[asyncio.Future[Any]] = [change] if at_once is None else [change, at_once]
        try:
            await asyncio.wait(watched, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
    return True
