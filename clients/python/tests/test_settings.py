"""How a connection is described, and what is refused before anything is sent."""

from __future__ import annotations

import pytest

from windlass.connection import DEFAULT_SERVER, Connection


def test_servers_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [str(server) for server in Connection.create().servers] == [DEFAULT_SERVER]
    monkeypatch.setenv("WINDLASS_SERVER", "https://a:1, https://b")
    monkeypatch.setenv("WINDLASS_TOKEN", "t0ken")
    connection = Connection.create()
    assert [server.target for server in connection.servers] == ["a:1", "b:443"]
    assert connection.headers() == (("authorization", "Bearer t0ken"),)
    assert Connection.create(token="other").headers() == (("authorization", "Bearer other"),)


def test_a_token_is_not_shown() -> None:
    assert "t0ken" not in repr(Connection.create("http://127.0.0.1:1", token="t0ken"))


def test_a_token_does_not_leave_the_machine_unencrypted_unless_that_is_said() -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        Connection.create("http://example.org", token="t0ken")
    Connection.create("http://example.org", token="t0ken", insecure=True)
    Connection.create(["https://example.org", "http://localhost:1", "http://[::1]:2"], token="t0ken")
    Connection.create("http://example.org")


@pytest.mark.parametrize(
    "url", ["", "example.org:1", "ftp://example.org", "http://", "http://u:p@example.org", "http://example.org/x"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        Connection.create([url])
