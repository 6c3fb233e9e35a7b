"""Where the servers are, and how to speak to them: addresses, token, TLS."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import grpc.aio

#: Where a server listens unless it is told otherwise.
DEFAULT_SERVER = "http://127.0.0.1:7878"

#: Largest answer that is read: a page of tasks, or as many payloads as a worker has slots.
ANSWER_MAX_BYTES = 256 << 20

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", ANSWER_MAX_BYTES),
    ("grpc.max_send_message_length", ANSWER_MAX_BYTES),
    # A server that comes back is found within a second; gRPC itself would wait up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # How long a connection may take, TLS and all, before the next server is tried.
    ("grpc.min_reconnect_backoff_ms", 5000),
    # Each of our channels finds out for itself whether its server is there, not from the failures of another.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True)
class Server:
    """One address."""

    #: ``host:port``.
    target: str
    is_tls: bool

    @classmethod
    def parse(cls, url: str) -> Server:
        """Reads ``http://host:port`` or ``https://host:port``."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an address of a server: {url!r}; write http://HOST:PORT or https://HOST:PORT")
        if parts.username or parts.password:
            raise ValueError("an address holds no user or password; pass the token as token=")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"an address of a server has no path: {url!r}")
        is_tls = parts.scheme == "https"
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(f"{host}:{parts.port or (443 if is_tls else 80)}", is_tls)

    @property
    def is_loopback(self) -> bool:
        """Whether nothing leaves this machine on the way to it."""
        host = self.target.rpartition(":")[0].strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def __str__(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{self.target}"


@dataclass(frozen=True)
class Connection:
    """What clients and workers need to reach a server.

    :param servers: one address or several; with several the next one is used when one fails. Default: the variable
        ``WINDLASS_SERVER`` (several with commas), else ``http://127.0.0.1:7878``.
    :param token: what the server asks for; default: the variable ``WINDLASS_TOKEN``.
    :param ca_file: certificates (PEM) that a server's own must descend from; default: those of gRPC.
    :param cert_file: certificate (PEM) that this client shows, with ``key_file``.
    :param insecure: lets the token travel unencrypted to another machine.
    """

    servers: tuple[Server, ...]
    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @classmethod
    def create(
        cls,
        servers: str | Sequence[str] | None = None,
        *,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        cert_file: str | os.PathLike[str] | None = None,
        key_file: str | os.PathLike[str] | None = None,
        insecure: bool = False,
    ) -> Connection:
        """Fills in what is not given from the environment, and checks it."""
        if servers is None:
            servers = os.environ.get("WINDLASS_SERVER") or DEFAULT_SERVER
        if isinstance(servers, str):
            servers = [part.strip() for part in servers.split(",") if part.strip()]
        parsed = tuple(Server.parse(url) for url in servers)
        if not parsed:
            raise ValueError("no server is named")
        if (cert_file is None) != (key_file is None):
            raise ValueError("cert_file and key_file belong together")
        if token is None:
            token = os.environ.get("WINDLASS_TOKEN") or None
        exposed = [server for server in parsed if not server.is_tls and not server.is_loopback]
        if token is not None and exposed and not insecure:
            raise ValueError(f"the token would go to {exposed[0]} unencrypted; use https://, or say insecure=True")
        return cls(parsed, token, _path(ca_file), _path(cert_file), _path(key_file))

    def metadata(self) -> grpc.aio.Metadata:
        """What every call brings along."""
        metadata = grpc.aio.Metadata()
        for name, value in self.headers():
            metadata.add(name, value)
        return metadata

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The same for calls that block."""
        return () if self.token is None else (("authorization", f"Bearer {self.token}"),)

    def channel(self, server: Server) -> grpc.aio.Channel:
        """A channel for asyncio."""
        if server.is_tls:
            return grpc.aio.secure_channel(server.target, self._credentials(), options=_OPTIONS)
        return grpc.aio.insecure_channel(server.target, options=_OPTIONS)

    def blocking_channel(self, server: Server) -> grpc.Channel:
        """A channel for threads."""
        if server.is_tls:
            return grpc.secure_channel(server.target, self._credentials(), options=_OPTIONS)
        return grpc.insecure_channel(server.target, options=_OPTIONS)

    def _credentials(self) -> grpc.ChannelCredentials:
        # Read anew for every channel: certificates are renewed while a process runs.
        def read(path: Path | None) -> bytes | None:
            return path.read_bytes() if path is not None else None

        return grpc.ssl_channel_credentials(read(self.ca_file), read(self.key_file), read(self.cert_file))


def _path(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)
