"""Keeps the lease while the event loop does not get to: a handler that blocks it must not cost the lease (NO-FALSE-DEATH).

Heartbeats go over the stream, from the event loop. A thread looks whether they are answered; if not, because a handler holds the
loop or because there is no stream now, it sends one itself, by call and at whichever server answers.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Callable

import grpc

from windlass import calls
from windlass.connection import Connection, Server
from windlass.errors import NotFoundError, WorkerExpiredError, from_status
from windlass.worker.engine import Engine
from windlass.worker.registration import Registration

log = logging.getLogger("windlass.worker")

#: How often it looks, in seconds, while there is no registration.
_IDLE = 0.5


class Keeper:
    """The thread. It never waits for the event loop."""

    def __init__(self, engine: Engine, connection: Connection) -> None:
        self._engine = engine
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._servers = itertools.cycle(connection.servers)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windlass-keeper", daemon=True)

    def start(self) -> None:
        """Starts to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it; not before a call that is under way."""
        self._stop.set()

    def _run(self) -> None:
        pause = _IDLE
        while not self._stop.wait(pause):
            registration = self._engine.registration
            if registration is None:
                pause = _IDLE
                continue
            pause = registration.heartbeat_every / 2
            # The loop sends one every fifth of a lease: two of them were not answered.
            if registration.valid_until - time.monotonic() < registration.ttl * 0.55:
                self._beat(registration, next(self._servers))

    def _beat(self, registration: Registration, server: Server) -> None:
        limit = registration.heartbeat_every
        with self._connection.blocking_channel(server) as channel:
            method = channel.unary_unary(
                calls.HEARTBEAT.path,
                request_serializer=calls.HEARTBEAT.request.SerializeToString,
                response_deserializer=calls.HEARTBEAT.answer.FromString,
            )
            sent_at = time.monotonic()
            try:
                request = self._engine.report(registration.worker_id)
                answer = method(request, timeout=limit, metadata=self._connection.headers())
            except grpc.RpcError as failure:
                if not isinstance(failure, grpc.Call):
                    raise
                error, _ = from_status(
                    failure.code(), failure.details(), list(failure.trailing_metadata() or ())
                )
                log.debug("a heartbeat by call failed: server=%s why=%s", server, error)
                if isinstance(error, (WorkerExpiredError, NotFoundError)):
                    registration.end()
                    self._tell(lambda: self._engine.fence_if(registration, str(error)))
                return
        registration.renewed(sent_at)
        log.debug("heartbeat by call: worker=%s server=%s", registration.worker_id, server)
        self._tell(lambda: self._engine.renewed(answer))

    def _tell(self, what: Callable[[], None]) -> None:
        if self._stop.is_set():
            return
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            # The loop is closed: there is nobody to tell.
            pass
