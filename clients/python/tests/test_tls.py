"""Tokens and certificates: what a client shows, and what it believes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme

import windlass
import windlass.sync
from windlass.v1 import task_pb2, tasks_pb2

Ask = Callable[..., Awaitable[windlass.Task]]


async def _ask_async(url: str, **options: Any) -> windlass.Task:
    async with windlass.Client(url, **options) as client:
        return await client.get("0" * 13)


async def _ask_blocking(url: str, **options: Any) -> windlass.Task:
    def ask() -> windlass.Task:
        with windlass.sync.Client(url, **options) as client:
            return client.get("0" * 13)

    return await asyncio.to_thread(ask)


@pytest.fixture(params=[_ask_async, _ask_blocking], ids=["asyncio", "blocking"])
def ask(request: pytest.FixtureRequest) -> Ask:
    way: Ask = request.param
    return way


@asynccontextmanager
async def guarded(credentials: grpc.ServerCredentials) -> AsyncIterator[str]:
    """A server that answers with what it was shown as ``authorization``."""

    async def get(
        _request: tasks_pb2.GetTaskRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> task_pb2.Task:
        shown = dict(context.invocation_metadata() or ()).get("authorization")
        return task_pb2.Task(state=task_pb2.TASK_STATE_READY, key=str(shown))

    handler = grpc.unary_unary_rpc_method_handler(
        get, tasks_pb2.GetTaskRequest.FromString, task_pb2.Task.SerializeToString
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("windlass.v1.Tasks", {"GetTask": handler}),)
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"https://localhost:{port}"
    finally:
        await server.stop(None)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def pair(authority: trustme.CA) -> tuple[bytes, bytes]:
    """A key and its certificate for this machine."""
    made = authority.issue_cert("localhost")
    return made.private_key_pem.bytes(), made.cert_chain_pems[0].bytes()


async def test_a_token_is_shown_to_a_server_whose_certificate_is_believed(
    authority: trustme.CA, ca_file: Path, ask: Ask
) -> None:
    async with guarded(grpc.ssl_server_credentials([pair(authority)])) as url:
        assert (await ask(url, ca_file=ca_file, token="t0ken")).key == "Bearer t0ken"
        assert (await ask(url, ca_file=ca_file)).key == "None"


async def test_a_certificate_of_somebody_else_is_not_believed(authority: trustme.CA, tmp_path: Path, ask: Ask) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    async with guarded(grpc.ssl_server_credentials([pair(authority)])) as url:
        with pytest.raises(windlass.UnavailableError):
            await ask(url, ca_file=other, token="t0ken")


async def test_a_client_shows_its_certificate_where_that_is_asked_for(
    authority: trustme.CA, ca_file: Path, tmp_path: Path, ask: Ask
) -> None:
    key, certificate = pair(authority)
    key_file, cert_file = tmp_path / "client.key", tmp_path / "client.pem"
    key_file.write_bytes(key)
    cert_file.write_bytes(certificate)
    strict = grpc.ssl_server_credentials(
        [pair(authority)], root_certificates=authority.cert_pem.bytes(), require_client_auth=True
    )
    async with guarded(strict) as url:
        task = await ask(url, ca_file=ca_file, cert_file=cert_file, key_file=key_file)
        assert task.state is windlass.TaskState.READY
        with pytest.raises(windlass.UnavailableError):
            await ask(url, ca_file=ca_file)


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(ValueError, match="belong together"):
        windlass.Client("https://localhost", cert_file="x.pem")
