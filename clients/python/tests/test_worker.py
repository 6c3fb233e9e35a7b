"""A worker on a real server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest
from running import name, running, seen_worker, set_slots, soon, wait_all
from servers import LIMIT, Server

from windlass import (
    CancelReason,
    Client,
    Context,
    Dead,
    InvalidError,
    NewTask,
    Release,
    Retry,
    RetryPolicy,
    Snooze,
    TaskState,
    Worker,
)

#: A retry comes at once.
AT_ONCE = RetryPolicy(base=0, max=0, jitter_percent=0)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client(server.url) as client:
        yield client


async def test_coroutines_and_plain_functions_run_tasks_and_their_results_are_kept(
    server: Server, client: Client
) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])
    main = threading.current_thread()

    @worker.handler("double")
    async def double(context: Context) -> object:
        assert threading.current_thread() is main
        assert isinstance(context.payload, dict)
        return {"doubled": context.payload["n"] * 2}

    @worker.handler("reverse")
    def reverse(context: Context) -> bytes:
        assert threading.current_thread() is not main
        assert isinstance(context.payload, bytes)
        return context.payload[::-1]

    @worker.handler("nothing")
    async def nothing(_context: Context) -> None:
        pass

    async with running(worker):
        double_id, reverse_id, nothing_id = [
            (await client.enqueue(kind, payload, queue=queue)).task_id
            for kind, payload in (("double", {"n": 21}), ("reverse", b"\x01\x02"), ("nothing", None))
        ]
        assert (await client.wait(double_id, timeout=LIMIT)).output == {"doubled": 42}
        assert (await client.wait(reverse_id, timeout=LIMIT)).state is TaskState.DONE
        task = await client.wait(nothing_id, timeout=LIMIT)
        assert (task.state, task.output) == (TaskState.DONE, None)
        assert worker.stats.done == 3


async def test_a_thousand_tasks_each_run_once_with_no_more_at_once_than_slots(
    server: Server, client: Client
) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue], slots=20)
    runs: list[str] = []
    at_once = most = 0

    @worker.handler("count")
    async def count(context: Context) -> None:
        nonlocal at_once, most
        runs.append(context.task_id)
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1

    enqueued = await client.enqueue_batch([NewTask(kind="count", queue=queue) for _ in range(1000)])
    async with running(worker):
        await wait_all(client, *(task.task_id for task in enqueued))
    assert sorted(runs) == sorted(task.task_id for task in enqueued)
    assert 1 < most <= 20


@pytest.mark.parametrize("names", [{"kind": "a\u202eb"}, {"queue": "a\u200bb"}])
async def test_a_worker_with_an_unsafe_name_ends_with_that_error(server: Server, names: dict[str, str]) -> None:
    worker = Worker(server.url, queues=[names["queue"]] if "queue" in names else [])

    @worker.handler(names.get("kind", "k"))
    async def never(_context: Context) -> None:
        raise AssertionError("its name is refused")

    with pytest.raises(InvalidError, match="invisible or reorder"):
        async with asyncio.timeout(LIMIT):
            await worker.run(handle_signals=False)


async def test_a_failure_is_tried_again_and_the_last_one_ends_the_task(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])

    @worker.handler("fails")
    async def fails(context: Context) -> None:
        raise ValueError(f"attempt {context.attempt}")

    async with running(worker):
        enqueued = await client.enqueue("fails", queue=queue, max_attempts=2, retry=AT_ONCE)
        task = await client.wait(enqueued.task_id, timeout=LIMIT)
    assert task.state is TaskState.DEAD
    assert [attempt.result for attempt in task.attempts] == ["retry", "dead"]
    assert task.error is not None and task.error.startswith("attempt 2 of 2: ValueError: attempt 2 (test_worker.py:")


async def test_outcomes_may_be_raised_or_returned(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])
    left = {
        "raised": [Retry("first", after=0), Snooze(0), Release(), Dead("that was it")],
        "returned": [Retry("first", after=0), Snooze(0), Release(), Dead("that was it")],
    }

    @worker.handler("raised")
    def raised(context: Context) -> None:
        raise left["raised"].pop(0)

    @worker.handler("returned")
    async def returned(context: Context) -> object:
        return left["returned"].pop(0)

    async with running(worker):
        for kind in left:
            enqueued = await client.enqueue(kind, queue=queue)
            task = await client.wait(enqueued.task_id, timeout=LIMIT)
            assert (task.state, task.error) == (TaskState.DEAD, "that was it")
            results = [attempt.result for attempt in task.attempts]
            assert results == ["retry", "snoozed", "released", "dead"]
            # Neither a snooze nor a release spends an attempt.
            assert task.attempt == 2


async def test_progress_is_seen_while_the_task_runs(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])
    go_on = asyncio.Event()

    @worker.handler("slow")
    async def slow(context: Context) -> None:
        context.progress("7 of 9")
        await go_on.wait()

    async with running(worker):
        enqueued = await client.enqueue("slow", queue=queue)
        while (await client.get(enqueued.task_id)).progress != "7 of 9":
            await asyncio.sleep(0.01)
        go_on.set()
        await client.wait(enqueued.task_id, timeout=LIMIT)


async def test_a_cancelled_task_ends_in_its_handler_whether_that_waits_or_looks(
    server: Server, client: Client
) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    reasons: list[CancelReason | None] = []

    @worker.handler("waits")
    async def waits(context: Context) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(context.cancel_reason)

    @worker.handler("looks")
    def looks(context: Context) -> str:
        loop.call_soon_threadsafe(started.set)
        assert context.wait_cancelled(LIMIT)
        reasons.append(context.cancel_reason)
        return "came to an end of its own"

    async with running(worker):
        for kind, state in (("waits", TaskState.CANCELLED), ("looks", TaskState.DONE)):
            started.clear()
            enqueued = await client.enqueue(kind, queue=queue)
            await soon(started)
            assert await client.cancel(enqueued.task_id, "no longer needed") is TaskState.RUNNING
            task = await client.wait(enqueued.task_id, timeout=LIMIT)
            assert task.state is state
        assert reasons == [CancelReason.REQUESTED] * 2


async def test_an_attempt_out_of_time_is_tried_again(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])

    @worker.handler("hangs")
    async def hangs(context: Context) -> str:
        if context.attempt == 1:
            await asyncio.Event().wait()
        return "in time"

    async with running(worker):
        enqueued = await client.enqueue("hangs", queue=queue, timeout=0.05, retry=AT_ONCE)
        task = await client.wait(enqueued.task_id, timeout=LIMIT)
    assert (task.state, task.output) == (TaskState.DONE, "in time")
    assert task.attempts[0].error == "timed out after 0.05 s"


async def test_a_lease_lasts_as_long_as_its_handler_runs(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue], lease_ttl=1.0)
    started, go_on = asyncio.Event(), asyncio.Event()

    @worker.handler("slow")
    async def slow(context: Context) -> None:
        started.set()
        await go_on.wait()

    async with running(worker):
        enqueued = await client.enqueue("slow", queue=queue)
        await soon(started)
        seen = await seen_worker(server, worker.worker_id)
        first = seen.renewed_at_ms
        # Three leases later it is still the same worker and the same attempt.
        while seen.renewed_at_ms < first + 3000:
            seen = await seen_worker(server, worker.worker_id)
        assert seen.live and seen.in_flight == 1
        go_on.set()
        task = await client.wait(enqueued.task_id, timeout=LIMIT)
    assert (task.state, task.crashes, len(task.attempts)) == (TaskState.DONE, 0, 1)


async def test_a_handler_that_blocks_the_event_loop_does_not_cost_the_lease(
    server: Server, client: Client
) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue], lease_ttl=1.0)

    @worker.handler("blocks")
    async def blocks(context: Context) -> bool:
        # The very thing that a coroutine must not do: for three leases nothing else of the worker runs.
        time.sleep(3.0)
        return context.cancelled

    async with running(worker):
        enqueued = await client.enqueue("blocks", queue=queue)
        task = await client.wait(enqueued.task_id, timeout=LIMIT)
        assert (task.state, task.output, task.crashes) == (TaskState.DONE, False, 0)
        assert worker.stats.self_fences == 0


async def test_the_server_sees_capacity_memory_kinds_and_that_it_drains(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue], slots=3, lease_ttl=1.0)
    started, go_on = asyncio.Event(), asyncio.Event()

    @worker.handler("slow")
    async def slow(context: Context) -> None:
        started.set()
        await go_on.wait()

    async with running(worker):
        enqueued = await client.enqueue("slow", queue=queue)
        await soon(started)
        worker_id = worker.worker_id
        while (seen := await seen_worker(server, worker_id)).in_flight != 1:
            pass
        assert (seen.max_capacity, seen.available_capacity) == (3, 2)
        assert 0 < seen.memory_usage <= 1
        assert (list(seen.kinds), list(seen.queues)) == (["slow"], [queue])
        worker.drain()
        while not (seen := await seen_worker(server, worker_id)).draining:
            pass
        assert seen.available_capacity == 0
        go_on.set()
        await client.wait(enqueued.task_id, timeout=LIMIT)
    assert (await seen_worker(server, worker_id)).ended, "it said farewell"


async def test_slots_are_set_while_it_runs(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue], slots=1, lease_ttl=1.0)
    both, running_now = asyncio.Event(), 0

    @worker.handler("meets")
    async def meets(context: Context) -> None:
        nonlocal running_now
        running_now += 1
        if running_now == 2:
            both.set()
        await both.wait()

    async with running(worker):
        first, second = await client.enqueue_batch([NewTask(kind="meets", queue=queue)] * 2)
        await set_slots(server, worker.worker_id, 2)
        await wait_all(client, first.task_id, second.task_id)


async def test_steps_of_a_workflow_run_one_after_another(server: Server, client: Client) -> None:
    queue, workflow = name(), name()
    worker = Worker(server.url, queues=[queue], slots=10)
    seen: list[object] = []

    @worker.handler("step")
    async def step(context: Context) -> None:
        seen.append(context.payload)
        await asyncio.sleep(0)
        assert seen[-1] == context.payload, "no other step started meanwhile"

    steps = [NewTask(kind="step", payload=n, queue=queue, workflow=workflow) for n in range(20)]
    enqueued = await client.enqueue_batch(steps)
    async with running(worker):
        await wait_all(client, *(task.task_id for task in enqueued))
    assert seen == list(range(20))


async def test_a_task_that_comes_while_the_worker_waits_reaches_it(server: Server, client: Client) -> None:
    queue = name()
    worker = Worker(server.url, queues=[queue])

    @worker.handler("echo")
    async def echo(context: Context) -> object:
        return context.payload

    async with running(worker):
        for n in range(20):
            enqueued = await client.enqueue("echo", n, queue=queue)
            assert (await client.wait(enqueued.task_id, timeout=LIMIT)).output == n
