"""A real server with access control: tokens, scopes, and TLS under an authority of one's own."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from running import running
from servers import LIMIT, Server, clean_environment, program

import windlass
import windlass.sync

Enqueue = Callable[..., Awaitable[None]]


async def _enqueue_async(url: str, **options: Any) -> None:
    async with windlass.Client(url, **options) as client:
        await client.enqueue("nobody", queue="unserved")


async def _enqueue_blocking(url: str, **options: Any) -> None:
    def enqueue() -> None:
        with windlass.sync.Client(url, **options) as client:
            client.enqueue("nobody", queue="unserved")

    await asyncio.to_thread(enqueue)


@pytest.fixture(params=[_enqueue_async, _enqueue_blocking], ids=["asyncio", "blocking"])
def enqueue(request: pytest.FixtureRequest) -> Enqueue:
    way: Enqueue = request.param
    return way


class Guarded:
    """A server that wants tokens, and the tokens that it knows."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._say("migrate")
        scopes = ("admin", "enqueue,read", "read", "work")
        self.tokens = {scope: self._say("token", "create", "--scope", scope) for scope in scopes}
        self.server = Server(folder, "--auth", "tokens", *arguments)

    def _say(self, *arguments: str) -> str:
        command = [str(program()), *arguments, "--store", f"sqlite:{self.folder / 'windlass.db'}"]
        said = subprocess.run(
            command, cwd=self.folder, env=clean_environment(), capture_output=True, text=True, check=True
        )
        return said.stdout.strip()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    guarded = Guarded(tmp_path_factory.mktemp("plain"))
    yield guarded
    guarded.server.kill()


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    made.private_key_pem.write_to_path(folder / "key.pem")
    made.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    guarded = Guarded(folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    yield guarded
    guarded.server.kill()


async def test_whoever_shows_a_token_with_the_scope_is_served(plain: Guarded, enqueue: Enqueue) -> None:
    await enqueue(plain.server.url, token=plain.tokens["enqueue,read"])
    await enqueue(plain.server.url, token=plain.tokens["admin"])


async def test_a_token_is_taken_from_the_variable(
    plain: Guarded, enqueue: Enqueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_TOKEN", plain.tokens["enqueue,read"])
    await enqueue(plain.server.url)


async def test_without_a_token_the_error_says_how_to_show_one(plain: Guarded, enqueue: Enqueue) -> None:
    with pytest.raises(windlass.UnauthorizedError, match="requires a token") as raised:
        await enqueue(plain.server.url)
    assert raised.value.code == "unauthorized"
    assert raised.value.hint is not None and "token" in raised.value.hint


async def test_a_token_that_is_not_known_is_refused(plain: Guarded, enqueue: Enqueue) -> None:
    with pytest.raises(windlass.UnauthorizedError, match="not known here"):
        await enqueue(plain.server.url, token="wl_0123456789abcdef_nobody")


async def test_the_error_of_a_wrong_scope_names_the_scope_that_is_needed(plain: Guarded, enqueue: Enqueue) -> None:
    with pytest.raises(windlass.ForbiddenError, match="needs the scope enqueue") as raised:
        await enqueue(plain.server.url, token=plain.tokens["read"])
    assert raised.value.code == "forbidden"


async def test_a_worker_and_a_client_work_over_tls_with_an_authority_of_ones_own(tls: Guarded) -> None:
    ca_file = tls.folder / "ca.pem"
    worker = windlass.Worker(tls.server.url, token=tls.tokens["work"], ca_file=ca_file)

    @worker.handler("double")
    async def double(context: windlass.Context) -> object:
        assert isinstance(context.payload, int)
        return 2 * context.payload

    async with (
        running(worker),
        windlass.Client(tls.server.url, token=tls.tokens["enqueue,read"], ca_file=ca_file) as client,
    ):
        added = await client.enqueue("double", 21)
        assert (await client.wait(added.task_id, timeout=LIMIT)).output == 42


async def test_a_worker_whose_token_may_not_work_ends_with_that_error(plain: Guarded) -> None:
    worker = windlass.Worker(plain.server.url, token=plain.tokens["enqueue,read"])

    @worker.handler("never")
    async def never(_context: windlass.Context) -> None:
        raise AssertionError("it may not work")

    with pytest.raises(windlass.ForbiddenError, match="needs the scope work"):
        async with asyncio.timeout(LIMIT):
            await worker.run(handle_signals=False)


async def test_a_certificate_of_another_authority_is_not_believed(
    tls: Guarded, enqueue: Enqueue, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    with pytest.raises(windlass.UnavailableError):
        await enqueue(tls.server.url, token=tls.tokens["enqueue,read"], ca_file=other)
