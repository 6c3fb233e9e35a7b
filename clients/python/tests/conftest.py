"""Servers for the tests that want one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from servers import Process, Server

# Whatever this machine is set to, the tests speak to the servers that they started.
for _name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[_name]
for _name in ("WINDLASS_SERVER", "WINDLASS_TOKEN"):
    os.environ.pop(_name, None)

Start = Callable[..., Server]


@pytest.fixture
def ended() -> Iterator[Callable[[Process], None]]:
    """Takes processes that are to be gone after the test."""
    with ExitStack() as stack:


        def ended(process: Process) -> None:
            stack.callback(process.kill)

        yield ended


@pytest.fixture
def start(tmp_path: Path, ended: Callable[[Process], None]) -> Start:
    """Starts servers; they end with the test. The first argument may be an earlier one, whose store and address are taken up."""

    def start(*arguments: str, after: Server | None = None, store: str | None = None) -> Server:
        listen = after.listen if after is not None else "127.0.0.1:0"
        server = Server(tmp_path, *arguments, store=store, listen=listen)
        ended(server)
        return server

    return start


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests of a file share; each has kinds or queues of its own."""
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()
