"""Both clients against a real server: the same questions, the same answers."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime, timedelta, timezone
from operator import attrgetter
from typing import Any, Protocol

import pytest
from conftest import Start
from servers import LIMIT, Server

import windlass
import windlass.sync
from windlass import Depth, JobState, NewTask, TaskState


class Asked(Protocol):
    """One way to call the methods of a client, whether they block or not."""

    async def __call__(self, method: str, *arguments: Any, **options: Any) -> Any: ...


async def _ask_async(client: windlass.Client, method: str, *arguments: Any, **options: Any) -> Any:
    answer = attrgetter(method)(client)(*arguments, **options)
    if isinstance(answer, AsyncIterator):
        return [task async for task in answer]
    assert isinstance(answer, Awaitable)
    return await answer


async def _ask_blocking(client: windlass.sync.Client, method: str, *arguments: Any, **options: Any) -> Any:
    answer = attrgetter(method)(client)(*arguments, **options)
    return list(answer) if isinstance(answer, Iterator) else answer


@pytest.fixture(params=["asyncio", "blocking"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Asked]]:
    """Makes clients of either sort."""
    opened: list[windlass.Client] = []
    blocking: list[windlass.sync.Client] = []

    def connect(*servers: str, **options: Any) -> Asked:
        if request.param == "blocking":
            blocking.append(client := windlass.sync.Client(servers, **options))
            return lambda *a, **o: _ask_blocking(client, *a, **o)
        opened.append(other := windlass.Client(servers, **options))
        return lambda *a, **o: _ask_async(other, *a, **o)

    yield connect
    for client in opened:
        await client.close()
    for other in blocking:
        other.close()


@pytest.fixture
def ask(server: Server, connect: Callable[..., Asked]) -> Asked:
    return connect(server.url)


def name() -> str:
    """A name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:12]}"


async def test_what_was_enqueued_is_found_again_as_it_was(ask: Asked) -> None:
    queue, kind = name(), name()
    payload = {"to": "a@example.org", "n": [1, 2.5, None, True], "text": "grün"}
    due = datetime.now(timezone.utc) + timedelta(hours=1)
    enqueued = await ask(
        "enqueue", kind, payload, queue=queue, priority=3, run_at=due, key="k-1", max_attempts=4, job=name()
    )
    assert len(enqueued.task_id) == 13 and not enqueued.existing
    assert any(kind in warning for warning in enqueued.warnings), "nobody handles this kind"
    task = await ask("get", enqueued.task_id)
    assert task.payload == payload
    assert (task.kind, task.queue, task.priority, task.key) == (kind, queue, 3, "k-1")
    assert (task.state, task.max_attempts, task.attempts) == (TaskState.SCHEDULED, 4, ())
    assert abs(task.due_at - due) < timedelta(milliseconds=2)


async def test_bytes_are_taken_as_they_are(ask: Asked) -> None:
    enqueued = await ask("enqueue", name(), b"\x00\xff")
    # People see size and digest only; the bytes are for the handler.
    assert (await ask("get", enqueued.task_id)).state is TaskState.READY


async def test_a_key_gives_one_task_and_another_payload_under_it_is_refused(ask: Asked) -> None:
    queue = name()
    first = await ask("enqueue", "k", {"n": 1}, queue=queue, key="same")
    again = await ask("enqueue", "k", {"n": 1}, queue=queue, key="same")
    assert (again.task_id, again.existing) == (first.task_id, True)
    with pytest.raises(windlass.KeyConflictError) as refused:
        await ask("enqueue", "k", {"n": 2}, queue=queue, key="same")
    assert (refused.value.key, refused.value.task_id) == ("same", first.task_id)
    ignored = await ask("enqueue", "k", {"n": 2}, queue=queue, key="same", ignore_key_conflict=True)
    assert ignored.task_id == first.task_id


async def test_a_batch_is_all_or_nothing(ask: Asked) -> None:
    queue = name()
    good = [NewTask(kind="k", payload=n, queue=queue) for n in range(3)]
    with pytest.raises(windlass.InvalidError):
        await ask("enqueue_batch", [*good, NewTask(kind="", queue=queue)])
    assert await ask("list", queue=queue) == []
    enqueued = await ask("enqueue_batch", good)
    listed = await ask("list", queue=queue)
    assert [task.id for task in listed] == [task.task_id for task in reversed(enqueued)], "newest first"


@pytest.mark.parametrize("letter", ["\u202e", "\u200b", "\u2028", "\ufeff", "\u0085"])
@pytest.mark.parametrize("field", ["kind", "queue", "job", "workflow"])
async def test_a_name_with_an_unsafe_character_is_refused(ask: Asked, field: str, letter: str) -> None:
    task: dict[str, Any] = {"kind": "k", field: f"a{letter}b"}
    with pytest.raises(windlass.InvalidError, match=rf"{field} .* has "):
        await ask("enqueue", **task)
    with pytest.raises(windlass.InvalidError, match=field):
        await ask("enqueue_batch", [NewTask(**task)])


async def test_a_queue_and_a_job_with_an_unsafe_name_are_refused(ask: Asked) -> None:
    for method in ("queues.pause", "jobs.pause"):
        with pytest.raises(windlass.InvalidError, match="invisible or reorder"):
            await ask(method, "a\u202eb")
    with pytest.raises(windlass.InvalidError, match="invisible or reorder"):
        await ask("jobs.set_concurrency", "a\u202eb", 3)


async def test_a_list_goes_on_over_its_pages(ask: Asked) -> None:
    queue = name()
    await ask("enqueue_batch", [NewTask(kind="k", queue=queue) for _ in range(450)])
    listed = await ask("list", queue=queue, state=TaskState.READY)
    assert len({task.id for task in listed}) == 450
    assert await ask("list", queue=queue, state=TaskState.DONE) == []


async def test_waiting_gives_the_output_of_the_handler(ask: Asked) -> None:
    enqueued = await ask("enqueue", "echo", {"hello": "world"})
    task = await ask("wait", enqueued.task_id, timeout=LIMIT)
    assert (task.state, task.output) == (TaskState.DONE, {"hello": "world"})
    assert task.ended_at is not None


async def test_waiting_ends_with_its_time(ask: Asked) -> None:
    enqueued = await ask("enqueue", name(), delay=3600)
    with pytest.raises(windlass.WaitTimeoutError) as late:
        await ask("wait", enqueued.task_id, timeout=0.05)
    assert isinstance(late.value, TimeoutError) and late.value.task_id == enqueued.task_id


async def test_a_cancelled_task_has_ended_and_cannot_be_cancelled_again(ask: Asked) -> None:
    enqueued = await ask("enqueue", name(), delay=3600)
    assert await ask("cancel", enqueued.task_id, "not needed") is TaskState.CANCELLED
    task = await ask("wait", enqueued.task_id, timeout=LIMIT)
    assert (task.state, task.error) == (TaskState.CANCELLED, "not needed")
    with pytest.raises(windlass.ConflictError):
        await ask("retry", enqueued.task_id)


async def test_a_task_that_has_ended_is_repeated_once(ask: Asked) -> None:
    enqueued = await ask("enqueue", "echo", {"n": 1})
    with pytest.raises(windlass.ConflictError):
        await ask("repeat", (await ask("enqueue", name(), delay=3600)).task_id)
    await ask("wait", enqueued.task_id, timeout=LIMIT)
    again = await ask("repeat", enqueued.task_id)
    copy = await ask("wait", again, timeout=LIMIT)
    assert (copy.state, copy.output, copy.key) == (TaskState.DONE, {"n": 1}, f"repeat-of:{enqueued.task_id}")
    with pytest.raises(windlass.ConflictError, match=again):
        await ask("repeat", enqueued.task_id)
    later = await ask("repeat", again, 3600.0)
    assert (await ask("get", later)).state is TaskState.SCHEDULED


async def test_a_queue_tells_its_depth_and_is_paused(ask: Asked) -> None:
    queue, other = name(), name()
    await ask("enqueue_batch", [NewTask(kind="k", queue=queue), NewTask(kind="m", queue=queue, delay=3600)])
    assert await ask("queues.depth", queue) == Depth(ready=1, scheduled=1)
    assert await ask("queues.depth", other) == Depth()
    assert await ask("queues.pause", queue) and not await ask("queues.pause", queue)
    assert await ask("queues.pause", other)
    queues = {found.name: found for found in await ask("queues.list")}
    assert (queues[queue].paused, sorted(queues[queue].kinds)) == (True, ["k", "m"])
    assert (queues[other].paused, queues[other].kinds) == (True, {})
    assert await ask("queues.resume", queue) and await ask("queues.resume", other)


async def test_a_job_is_limited_paused_and_removed(ask: Asked) -> None:
    job, made = name(), name()
    await ask("enqueue", name(), job=made, job_concurrency=2)
    await ask("enqueue", name(), job=made, job_concurrency=9)
    assert (await ask("jobs.get", made)).concurrency == 2, "a job that is there keeps its limit"
    assert (await ask("jobs.set_concurrency", job, 3)).concurrency == 3
    assert (await ask("jobs.set_delay", job, 0.2)).delay == 0.2
    assert (await ask("jobs.set_concurrency", job, None)).concurrency is None
    assert (await ask("jobs.pause", job)).state is JobState.PAUSED
    assert (await ask("jobs.resume", job)).state is JobState.ACTIVE
    assert (await ask("jobs.cancel", job, now=True)).state is JobState.CANCELLED
    assert {job, made} <= {found.name for found in await ask("jobs.list")}
    assert await ask("jobs.remove", made) == 2
    for call in (("jobs.get", made), ("jobs.pause", made), ("jobs.remove", made)):
        with pytest.raises(windlass.NotFoundError):
            await ask(*call)


async def test_errors_are_typed_and_say_what_is_wrong(ask: Asked) -> None:
    for call in (("get", "0" * 13), ("wait", "0" * 13), ("cancel", "0" * 13)):
        with pytest.raises(windlass.NotFoundError) as missing:
            await ask(*call)
        assert missing.value.code == "not_found" and "0000000000000" in str(missing.value)
    with pytest.raises(windlass.InvalidError):
        await ask("get", "not an id")
    with pytest.raises(windlass.InvalidError, match="payload_max_bytes"):
        await ask("enqueue", "k", "x" * (1 << 20))


async def test_what_json_cannot_say_is_refused_before_it_is_sent_and_not_shown(ask: Asked) -> None:
    secret = "s3cret"
    for value in ({"secret": secret, "of": {1, 2}}, {"secret": secret, "n": float("nan")}, {secret: "\ud800"}):
        with pytest.raises(windlass.InvalidError) as refused:
            await ask("enqueue", "k", value)
        assert secret not in str(refused.value)
    with pytest.raises(windlass.InvalidError, match="time zone"):
        await ask("enqueue", "k", run_at=datetime(2030, 1, 1))


async def test_the_next_server_is_used_when_one_is_gone(
    start: Start, connect: Callable[..., Asked]
) -> None:
    gone, there = start(), start(store=f"sqlite:{start().folder / 'other.db'}")
    ask = connect(gone.url, there.url)
    await ask("enqueue", "echo")
    gone.kill()
    enqueued = await ask("enqueue", "echo", key="k")
    assert (await ask("wait", enqueued.task_id, timeout=LIMIT)).state is TaskState.DONE


async def test_no_server_at_all_is_said_at_once(connect: Callable[..., Asked], start: Start) -> None:
    server = start()
    server.kill()
    with pytest.raises(windlass.UnavailableError):
        await connect(server.url)("enqueue", "echo")
