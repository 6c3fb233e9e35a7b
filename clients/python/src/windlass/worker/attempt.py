"""Runs one attempt: a pipeline of named steps from a claimed task to its end. ::

    decode ─► call the handler ─► catch ─► deadline or cancellation ─► end
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from windlass import payload as payloads
from windlass.errors import InvalidError
from windlass.outcome import Cancel, Dead, Outcome, Release, Retry
from windlass.v1 import task_pb2
from windlass.worker.context import CancelReason, Context
from windlass.worker.registration import Registration

#: What runs tasks of a kind: a coroutine function, or a plain one, which gets a thread.
Handler: TypeAlias = Callable[[Context], "Awaitable[object] | object"]

#: How long a handler that was asked to end may take, in seconds, before its task is settled without it.
CANCEL_GRACE = 5.0


class Attempt:
    """A claimed task in its slot."""

    def __init__(
        self,
        claimed: task_pb2.ClaimedTask,
        handler: Handler,
        registration: Registration,
        report_progress: Callable[[Attempt, str], None],
    ) -> None:
        self.lease = claimed.lease
        self.registration = registration
        self.kind: str = claimed.lane.kind
        self._claimed = claimed
        self._handler = handler
        self._report_progress = report_progress
        self._received_at = time.monotonic()
        self._context: Context | None = None
        self._asked = asyncio.Event()
        self._reason: CancelReason | None = None
        self._request = ""

    @property
    def id(self) -> tuple[str, int]:
        """The task and the lease: another attempt of the same task is another one."""
        return self.lease.task_id, self.lease.lease

    @property
    def is_lost(self) -> bool:
        """Whether the task may be somebody else's: then nothing is settled."""
        return self._reason is CancelReason.LEASE_LOST or self.registration.is_over

    def store_now_ms(self) -> int:
        """The store's clock, as the claim told it, carried on with our own monotonic one (CLOCK-FREE)."""
        return self._claimed.claimed_at_ms + round((time.monotonic() - self._received_at) * 1000)

    def cancel(self, reason: CancelReason, request: str = "") -> None:
        """Asks the handler to end. The first reason stays, but for the loss of the lease: that one always counts."""
        if self._reason is None or reason is CancelReason.LEASE_LOST:
            self._reason = reason
            self._request = request
            if self._context is not None:
                self._context._cancel(reason)
            self._asked.set()

    async def run(self) -> tuple[object, asyncio.Future[object] | None]:
        """Runs the handler. Answers its end, and the handler itself if it did not end although it was asked to."""
        try:
            payload = payloads.decode(self._claimed.payload)
        except InvalidError as error:
            return Dead(error.message), None
        self._context = context = Context(
            self._claimed, payload, self.registration, lambda text: self._report_progress(self, text)
        )
        if self._reason is not None:
            context._cancel(self._reason)
        is_async = inspect.iscoroutinefunction(self._handler) or inspect.iscoroutinefunction(
            getattr(self._handler, "__call__", None)
        )
        running: asyncio.Future[object]
        if is_async:
            running = asyncio.ensure_future(_called(self._handler, context))
        else:
            running = _in_thread(self._handler, context)
        await self._until_ended_or_asked(running)
        if not running.done():
            if is_async:
                running.cancel()
            # It may clean up, or even finish, for a while.
            await asyncio.wait([running], timeout=CANCEL_GRACE)
        left = None if running.done() else running
        return self._end(running), left

    async def _until_ended_or_asked(self, running: asyncio.Future[object]) -> None:
        limit = self._claimed.timeout_ms / 1000 if self._claimed.HasField("timeout_ms") else None
        asked = asyncio.ensure_future(self._asked.wait())
        both: list[asyncio.Future[Any]] = [running, asked]
        try:
            done, _ = await asyncio.wait(both, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                self.cancel(CancelReason.DEADLINE)
        finally:
            asked.cancel()

    def _end(self, running: asyncio.Future[object]) -> object:
        if running.done() and not running.cancelled():
            end = running.result()
            # Whoever was out of time has failed, whatever it says; any other may still have its own end.
            if not isinstance(end, _Cancelled) and self._reason is not CancelReason.DEADLINE:
                return end
        match self._reason:
            case CancelReason.DEADLINE:
                return Retry(f"timed out after {self._claimed.timeout_ms / 1000:g} s")
            case CancelReason.REQUESTED:
                return Cancel(self._request)
            case CancelReason.SHUTDOWN | CancelReason.LEASE_LOST:
                return Release()
            case None:
                return Retry("the handler cancelled itself")


class _Cancelled:
    """The handler let its cancellation through."""


async def _called(handler: Handler, context: Context) -> object:
    try:
        end = handler(context)
        return await end if inspect.isawaitable(end) else end
    except asyncio.CancelledError:
        return _Cancelled()
    except BaseException as error:
        return failure(error)


def _in_thread(handler: Handler, context: Context) -> asyncio.Future[object]:
    """Runs a plain function in a thread of its own. Not in a pool: the process may end while it does not."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def tell(end: object) -> None:
        if not future.done():
            future.set_result(end)

    def run() -> None:
        try:
            end: object = handler(context)
        except BaseException as error:
            end = failure(error)
        try:
            loop.call_soon_threadsafe(tell, end)
        except RuntimeError:
            # The loop is closed: the worker has ended without this handler.
            pass

    surroundings = contextvars.copy_context()
    name = f"windlass-{context.kind}-{context.task_id}"
    threading.Thread(target=surroundings.run, args=(run,), name=name, daemon=True).start()
    return future


def failure(error: BaseException) -> Outcome:
    """What an exception of a handler means for its task."""
    if isinstance(error, Outcome):
        return error
    text = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    # The first frames are ours; the last one is where it happened.
    if len(frames) > 1:
        last = frames[-1]
        text = f"{text} ({last.filename.rpartition('/')[2]}:{last.lineno} in {last.name})"
    return Retry(text)
