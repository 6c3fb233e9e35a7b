"""What a worker does when streams and servers fail, against a server that fails on demand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from scripted import LIMIT, ScriptedServer, claimed, scripted_server

from windlass import CancelReason, Context, Snooze, UnauthorizedError, Worker
from windlass.v1 import task_pb2, workers_pb2


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        yield server


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    """The worker runs meanwhile; it ends without ceremony."""
    task = asyncio.create_task(worker.run(handle_signals=False))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def echo_worker(*servers: ScriptedServer, slots: int = 2, lease_ttl: float = 10.0) -> Worker:
    worker = Worker([server.url for server in servers], slots=slots, lease_ttl=lease_ttl)

    @worker.handler("echo")
    async def echo(context: Context) -> object:
        return context.payload

    return worker


class Gate:
    """A handler that tells when it has started and how it ended, and goes on when it may."""

    def __init__(self, worker: Worker, kind: str = "gate") -> None:
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.reason: CancelReason | None = None

        @worker.handler(kind)
        async def gate(context: Context) -> str:
            self.started.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.reason = context.cancel_reason
                self.cancelled.set()
                raise
            return "went on"


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(LIMIT):
        await event.wait()


async def test_a_batch_whose_answer_was_lost_is_sent_again_unchanged(server: ScriptedServer) -> None:
    async with running(echo_worker(server)):
        first = await server.accept()
        assert first.hello.worker_id == ""
        assert list(first.hello.register.kinds) == ["echo"]
        first.welcome()
        await first.expect_credit(2)
        task = claimed()
        first.push(task)
        batch = await first.expect_batch()
        assert (batch.worker_id, batch.settler_no, batch.batch_no) == ("w1", 0, 1)
        assert batch.items[0].done.output.data == b"{}"
        first.lose()

        second = await server.accept()
        assert second.hello.worker_id == "w1"
        # A finished task whose end is not written is still held: the store must not hand it back.
        held = [workers_pb2.Held(task_id=task.lease.task_id, lease=7)]
        assert list(second.hello.in_flight) == held
        second.welcome()
        assert await second.expect_batch() == batch
        second.acknowledge(batch)
        # The next one has the next number.
        second.push(claimed())
        assert (await second.expect_batch()).batch_no == 2


async def test_ends_that_gather_meanwhile_do_not_join_the_batch_in_doubt(server: ScriptedServer) -> None:
    worker = echo_worker(server, slots=3)
    async with running(worker):
        first = await server.accept()
        first.welcome()
        first.push(claimed(data=b"1"))
        batch = await first.expect_batch()
        first.push(claimed(data=b"2"))
        while worker.stats.done < 2:
            await asyncio.sleep(0)
        first.lose()
        second = await server.accept()
        assert len(second.hello.in_flight) == 2
        second.welcome()
        assert await second.expect_batch() == batch
        second.acknowledge(batch)
        following = await second.expect_batch()
        assert following.batch_no == 2
        assert [item.done.output.data for item in following.items] == [b"2"]


async def test_a_running_task_goes_on_over_a_lost_stream(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=1)
    gate = Gate(worker)
    async with running(worker):
        first = await server.accept()
        first.welcome()
        task = claimed("gate")
        first.push(task)
        await soon(gate.started)
        first.lose()
        second = await server.accept()
        assert [held.task_id for held in second.hello.in_flight] == [task.lease.task_id]
        second.welcome()
        # Its slot is taken: this stream may bring nothing.
        await second.expect_credit(0)
        gate.go_on.set()
        batch = await second.expect_batch()
        assert batch.items[0].done.output.data == b'"went on"'
        second.acknowledge(batch)
        await second.expect_credit(1)


async def test_a_task_that_comes_again_over_the_next_stream_runs_once(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=2)
    gate = Gate(worker)
    async with running(worker):
        first = await server.accept()
        first.welcome()
        task = claimed("gate")
        first.push(task)
        await soon(gate.started)
        first.lose()
        second = await server.accept()
        second.welcome()
        second.push(task)
        # It has come, and took no second slot.
        await second.expect_credit(2)
        gate.go_on.set()
        batch = await second.expect_batch()
        assert len(batch.items) == 1
        second.acknowledge(batch)
        await second.expect_credit(3)
        assert worker.stats.done == 1


async def test_without_answers_to_heartbeats_handlers_are_cancelled_and_nothing_is_settled(
    server: ScriptedServer,
) -> None:
    worker = Worker(server.url, slots=1, lease_ttl=1.0)
    gate = Gate(worker)
    async with running(worker):
        first = await server.accept()
        first.answers_heartbeats = False
        first.welcome(ttl=1.0)
        first.push(claimed("gate"))
        await soon(gate.started)
        # Nobody says welcome to the streams that follow.
        await soon(gate.cancelled)
        assert gate.reason is CancelReason.LEASE_LOST
        while not (stream := await server.accept()).hello.worker_id == "":
            pass
        # It registers anew and owns up to nothing.
        assert not stream.hello.in_flight
        stream.welcome("w2")
        stream.push(claimed("gate", worker_id="w2"))
        gate.go_on.set()
        batch = await stream.expect_batch()
        assert (batch.worker_id, batch.batch_no, len(batch.items)) == ("w2", 1, 1)
        assert worker.stats.self_fences == 1


async def test_an_end_from_before_the_lease_was_lost_is_still_offered_under_its_old_name(
    server: ScriptedServer,
) -> None:
    worker = echo_worker(server, lease_ttl=1.0)
    async with running(worker):
        first = await server.accept()
        first.answers_heartbeats = False
        first.welcome(ttl=1.0)
        first.push(claimed())
        batch = await first.expect_batch()
        while (stream := await server.accept()).hello.worker_id != "":
            pass
        # By call: a stream speaks for its own worker only, and has numbers of its own.
        assert server.settled == [batch]
        stream.welcome("w2")
        stream.push(claimed(worker_id="w2"))
        assert (await stream.expect_batch()).batch_no == 1


async def test_what_was_claimed_for_a_lost_stream_is_below_the_numbers_of_the_next(
    server: ScriptedServer,
) -> None:
    async with running(echo_worker(server)):
        first = await server.accept()
        assert first.hello.up_to_claim_no == 0
        first.welcome()
        first.push(claimed(claim_no=3))
        first.acknowledge(await first.expect_batch())
        first.lose()
        # Number 4 may have been claimed and have got lost with the stream.
        second = await server.accept()
        assert second.hello.up_to_claim_no > 4
        second.lose()
        assert (await server.accept()).hello.up_to_claim_no > second.hello.up_to_claim_no


async def test_from_time_to_time_the_store_is_told_what_is_held(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=2, lease_ttl=0.5)
    Gate(worker)
    async with running(worker):
        stream = await server.accept()
        stream.welcome(ttl=0.5)
        stream.push(first := claimed("gate", claim_no=1))
        stream.push(second := claimed("gate", claim_no=2))
        async with asyncio.timeout(LIMIT):
            compared = await server.compared.get()
        assert {held.task_id for held in compared.in_flight} == {first.lease.task_id, second.lease.task_id}
        # The rest of the last claim may be on its way.
        assert (compared.worker_id, compared.up_to_claim_no) == ("w1", 1)


async def test_an_end_after_the_lease_is_over_is_not_settled_even_if_no_timer_ran(
    server: ScriptedServer,
) -> None:
    worker = Worker(server.url, slots=1, lease_ttl=0.5)

    @worker.handler("blocks")
    async def blocks(context: Context) -> None:
        # The very thing that a coroutine must not do: nothing else of the worker runs meanwhile.
        while not context.cancelled:
            pass

    async with running(worker):
        first = await server.accept()
        first.answers_heartbeats = False
        first.welcome(ttl=0.5)
        first.push(claimed("blocks"))
        while (stream := await server.accept()).hello.worker_id != "":
            pass
        assert not stream.hello.in_flight
        assert (worker.stats.self_fences, worker.stats.done) == (1, 0)


async def test_a_worker_that_is_told_that_it_expired_registers_anew(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=1)
    gate = Gate(worker)
    async with running(worker):
        first = await server.accept()
        first.answers_heartbeats = False
        first.welcome()
        first.push(claimed("gate"))
        await soon(gate.started)
        expired = task_pb2.Error(code="worker_expired", message="the worker's registration is over")
        first.send(heartbeat=workers_pb2.HeartbeatAnswer(error=expired))
        await soon(gate.cancelled)
        assert gate.reason is CancelReason.LEASE_LOST
        second = await server.accept()
        assert second.hello.worker_id == "" and not second.hello.in_flight


async def test_a_silent_server_is_left_for_the_next_one_before_the_lease_is_lost(
    server: ScriptedServer,
) -> None:
    async with scripted_server() as other:
        worker = Worker([server.url, other.url], slots=1, lease_ttl=3.0)
        gate = Gate(worker)
        async with running(worker):
            first = await server.accept()
            first.answers_heartbeats = False
            first.welcome(ttl=3.0)
            first.push(task := claimed("gate"))
            await soon(gate.started)
            second = await other.accept()
            assert second.hello.worker_id == "w1"
            assert [held.task_id for held in second.hello.in_flight] == [task.lease.task_id]
            second.welcome(ttl=3.0)
            gate.go_on.set()
            assert (await second.expect_batch()).items[0].HasField("done")
            assert worker.stats.self_fences == 0


async def test_a_server_that_drains_is_left_with_what_runs(server: ScriptedServer) -> None:
    async with scripted_server() as other:
        worker = Worker([server.url, other.url], slots=1)
        gate = Gate(worker)
        async with running(worker):
            first = await server.accept()
            first.welcome()
            first.push(claimed("gate"))
            await soon(gate.started)
            first.send(drain=workers_pb2.Drain(reason="restart"))
            second = await other.accept()
            assert len(second.hello.in_flight) == 1


async def test_the_only_server_is_not_left_while_something_runs(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=2)
    gate = Gate(worker)
    async with running(worker):
        first = await server.accept()
        first.welcome()
        await first.expect_credit(2)
        first.push(claimed("gate"))
        await soon(gate.started)
        first.send(drain=workers_pb2.Drain(reason="restart"))
        # It may bring nothing more.
        await first.expect_credit(1)
        gate.go_on.set()
        first.acknowledge(await first.expect_batch())
        assert not (await server.accept()).hello.in_flight


async def test_what_comes_beyond_the_slots_is_handed_back(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=1)
    gate = Gate(worker)
    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed("gate"), extra := claimed("gate"))
        batch = await stream.expect_batch()
        assert [item.held.task_id for item in batch.items] == [extra.lease.task_id]
        assert batch.items[0].HasField("release")


async def test_a_kind_without_a_handler_is_put_off_and_spends_no_attempt(server: ScriptedServer) -> None:
    async with running(echo_worker(server)):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed("unheard-of"))
        assert (await stream.expect_batch()).items[0].HasField("snooze")


async def test_nothing_more_is_asked_for_while_as_many_ends_as_slots_are_unwritten(
    server: ScriptedServer,
) -> None:
    async with running(echo_worker(server, slots=1, lease_ttl=1.0)):
        stream = await server.accept()
        stream.welcome(ttl=1.0)
        await stream.expect_credit(1)
        stream.push(claimed())
        batch = await stream.expect_batch()
        stream.heartbeats.clear()
        async with asyncio.timeout(LIMIT):
            # Nothing runs, and yet nothing could start.
            while not any(beat.in_flight == 0 for beat in stream.heartbeats):
                await asyncio.sleep(0)
        assert stream.heartbeats[-1].available_capacity == 0
        assert stream.credit == 1
        stream.acknowledge(batch)
        await stream.expect_credit(2)


async def test_a_batch_that_the_store_cannot_take_now_is_sent_again(server: ScriptedServer) -> None:
    async with running(echo_worker(server)):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed())
        batch = await stream.expect_batch()
        busy = task_pb2.Error(code="unavailable", message="the store is not there")
        stream.send(settled=workers_pb2.SettledBatch(settler_no=0, batch_no=1, error=busy))
        assert await stream.expect_batch() == batch


async def test_a_refused_batch_is_not_sent_again_and_the_next_one_goes_out(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    worker = echo_worker(server)
    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed(data=b'"a secret"'))
        await stream.expect_batch()
        refused = task_pb2.Error(code="invalid", message="no")
        stream.send(settled=workers_pb2.SettledBatch(settler_no=0, batch_no=1, error=refused))
        stream.push(claimed())
        assert (await stream.expect_batch()).batch_no == 2
        assert worker.stats.fenced == 1
    assert "refused" in caplog.text and "secret" not in caplog.text


async def test_steps_of_workflows_do_not_wait_for_the_answers_of_plain_tasks(server: ScriptedServer) -> None:
    async with running(echo_worker(server)):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed())
        assert (await stream.expect_batch()).settler_no == 0
        stream.push(claimed(workflow="order-1"))
        assert (await stream.expect_batch()).settler_no == 1


async def test_a_cancellation_reaches_the_handler_and_names_the_reason(server: ScriptedServer) -> None:
    worker = Worker(server.url)
    gate = Gate(worker)
    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        stream.push(task := claimed("gate"))
        await soon(gate.started)
        # One for an earlier lease means nothing.
        for lease in (6, 7):
            stream.send(
                cancel=workers_pb2.Cancellation(task_id=task.lease.task_id, lease=lease, reason=f"no {lease}")
            )
        item = (await stream.expect_batch()).items[0]
        assert item.cancelled.reason == "no 7"
        assert gate.reason is CancelReason.REQUESTED


async def test_an_attempt_that_is_out_of_time_has_failed(server: ScriptedServer) -> None:
    worker = Worker(server.url)
    gate = Gate(worker)
    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed("gate", timeout_ms=50))
        item = (await stream.expect_batch()).items[0]
        assert item.retry.error == "timed out after 0.05 s"
        assert gate.reason is CancelReason.DEADLINE


async def test_what_a_handler_says_after_its_time_is_up_does_not_count(server: ScriptedServer) -> None:
    worker = Worker(server.url)

    @worker.handler("late")
    def late(context: Context) -> str:
        assert context.wait_cancelled(LIMIT)
        return "done, but too late"

    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed("late", timeout_ms=50))
        assert (await stream.expect_batch()).items[0].retry.error == "timed out after 0.05 s"


async def test_the_error_text_is_kept_with_the_task_and_stays_out_of_the_log(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    worker = Worker(server.url)

    @worker.handler("fails")
    def fails(context: Context) -> None:
        raise ValueError(f"cannot use {context.payload}")

    @worker.handler("exits")
    async def exits(_context: Context) -> None:
        raise SystemExit(3)

    @worker.handler("snoozes")
    async def snoozes(_context: Context) -> Snooze:
        return Snooze(60)

    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        errors = []
        for kind in ("fails", "exits"):
            stream.push(claimed(kind, data=b'"a secret"'))
            batch = await stream.expect_batch()
            errors.append(batch.items[0].retry.error)
            stream.acknowledge(batch)
        assert errors[0].startswith("ValueError: cannot use a secret (test_stream.py:"), errors
        assert errors[1].startswith("SystemExit: 3"), errors
        stream.push(claimed("snoozes"))
        due = (await stream.expect_batch()).items[0].snooze.due_at_ms
        # Of the store's clock, as the claim told it.
        assert 1_060_000 <= due < 1_060_000 + LIMIT * 1000
    assert "attempt failed" in caplog.text
    assert "secret" not in caplog.text


async def test_progress_goes_up_with_its_lease(server: ScriptedServer) -> None:
    worker = Worker(server.url)
    told = asyncio.Event()

    @worker.handler("slow")
    async def slow(context: Context) -> None:
        context.progress("half")
        await told.wait()

    async with running(worker):
        stream = await server.accept()
        stream.welcome()
        stream.push(task := claimed("slow"))
        progress = (await stream.expect("progress")).progress
        assert (progress.task_id, progress.lease, progress.worker_id) == (task.lease.task_id, 7, "w1")
        assert progress.progress == "half"
        told.set()


async def test_slots_that_somebody_set_are_used_from_then_on(server: ScriptedServer) -> None:
    worker = echo_worker(server, slots=2, lease_ttl=1.0)
    async with running(worker):
        stream = await server.accept()
        stream.answers_heartbeats = False
        stream.welcome(ttl=1.0)
        await stream.expect_credit(2)
        renewed = workers_pb2.HeartbeatResponse(max_capacity=5)
        stream.send(heartbeat=workers_pb2.HeartbeatAnswer(renewed=renewed))
        await stream.expect_credit(5)
        stream.answers_heartbeats = True


async def test_drain_grants_nothing_more_finishes_what_runs_and_says_farewell(
    server: ScriptedServer,
) -> None:
    worker = Worker(server.url, slots=2)
    gate = Gate(worker)
    async with running(worker) as run:
        stream = await server.accept()
        stream.welcome()
        await stream.expect_credit(2)
        stream.push(claimed("gate"))
        await soon(gate.started)
        worker.drain()
        await stream.expect_credit(1)
        stream.push(late := claimed("gate"))
        batch = await stream.expect_batch()
        assert batch.items[0].held.task_id == late.lease.task_id and batch.items[0].HasField("release")
        stream.acknowledge(batch)
        gate.go_on.set()
        batch = await stream.expect_batch()
        assert batch.items[0].HasField("done")
        assert not run.done(), "it waits for the receipt"
        stream.acknowledge(batch)
        async with asyncio.timeout(LIMIT):
            await run
        assert server.retired == ["w1"]


@pytest.mark.parametrize("how", ["deadline", "second call"])
async def test_what_does_not_end_in_time_is_handed_back_without_spending_an_attempt(
    server: ScriptedServer, how: str
) -> None:
    worker = Worker(server.url, slots=1, drain_timeout=0.0 if how == "deadline" else 3600.0)
    gate = Gate(worker)
    async with running(worker) as run:
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed("gate"))
        await soon(gate.started)
        worker.drain()
        if how == "second call":
            worker.drain()
        batch = await stream.expect_batch()
        assert batch.items[0].HasField("release")
        assert gate.reason is CancelReason.SHUTDOWN
        stream.acknowledge(batch)
        async with asyncio.timeout(LIMIT):
            await run


async def test_a_worker_that_is_refused_says_so_and_does_not_try_for_ever(server: ScriptedServer) -> None:
    server.refusals.append(grpc.StatusCode.UNAUTHENTICATED)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(UnauthorizedError):
            await echo_worker(server).run(handle_signals=False)


async def test_a_worker_that_is_cancelled_ends_its_handlers_and_settles_nothing(
    server: ScriptedServer,
) -> None:
    worker = Worker(server.url)
    gate = Gate(worker)
    async with running(worker) as run:
        stream = await server.accept()
        stream.welcome()
        stream.push(claimed("gate"))
        await soon(gate.started)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert gate.cancelled.is_set()
        assert worker.stats.released == 0 and server.retired == []


async def test_a_token_that_stops_working_while_tasks_run_does_not_end_the_worker(
    server: ScriptedServer,
) -> None:
    async with running(echo_worker(server)):
        first = await server.accept()
        first.welcome()
        server.refusals.append(grpc.StatusCode.UNAUTHENTICATED)
        first.lose()
        assert (await server.accept()).hello.worker_id == "w1"


def renewed_in(epoch: int) -> workers_pb2.HeartbeatAnswer:
    return workers_pb2.HeartbeatAnswer(renewed=workers_pb2.HeartbeatResponse(lease_epoch=epoch))


async def test_an_attempt_whose_claim_the_store_forgot_ends_after_the_next_heartbeat(
    server: ScriptedServer,
) -> None:
    # The lease is so long that no comparison comes by itself.
    worker = Worker(server.url, slots=2, lease_ttl=600.0)
    forgotten, kept = Gate(worker), Gate(worker, "kept")
    async with running(worker):
        stream = await server.accept()
        stream.answers_heartbeats = False
        stream.welcome(ttl=600.0)
        stream.push(lost := claimed("gate", claim_no=7), own := claimed("kept", claim_no=7))
        await soon(forgotten.started)
        await soon(kept.started)
        server.lost = [workers_pb2.Held(task_id=lost.lease.task_id, lease=lost.lease.lease)]
        stream.send(heartbeat=renewed_in(1024))
        await soon(forgotten.cancelled)
        assert forgotten.reason is CancelReason.LEASE_LOST
        kept.go_on.set()
        batch = await stream.expect_batch()
        # Nothing of the lost one is settled, and the registration stays.
        assert [item.held.task_id for item in batch.items] == [own.lease.task_id]
        assert batch.worker_id == "w1"
        assert worker.stats.fenced == 1 and worker.stats.self_fences == 0


async def test_what_a_new_stream_says_is_lost_ends_at_once(server: ScriptedServer) -> None:
    worker = Worker(server.url, slots=2, lease_ttl=600.0)
    gate = Gate(worker)
    async with running(worker):
        first = await server.accept()
        first.welcome(ttl=600.0)
        first.push(task := claimed("gate", claim_no=7))
        await soon(gate.started)
        first.lose()
        second = await server.accept()
        assert [held.task_id for held in second.hello.in_flight] == [task.lease.task_id]
        lost = [workers_pb2.Held(task_id=task.lease.task_id, lease=task.lease.lease)]
        second.send(welcome=workers_pb2.Welcome(worker_id="w1", lease_ttl_ms=600_000, lost=lost))
        await soon(gate.cancelled)
        assert gate.reason is CancelReason.LEASE_LOST
