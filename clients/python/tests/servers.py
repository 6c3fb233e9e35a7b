"""Real servers: the built program, started and ended by the tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

#: Bounds a failure; nothing is shown by it.
LIMIT = 60.0
_ADDRESS = re.compile(r"https?://(?:127\.0\.0\.1|localhost):\d+")


def program() -> Path:
    """The built ``windlass`` program."""
    path = os.environ.get("WINDLASS_BIN")
    if path is None:
        pytest.fail("WINDLASS_BIN does not name the windlass program; build it with: cargo build -p windlass-cli")
    return Path(path)


def clean_environment(**more: str) -> dict[str, str]:
    """No setting of the machine changes what a test sees."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("WINDLASS_") and not name.lower().endswith("_proxy")
    }
    return {**kept, "NO_COLOR": "1", **more}


class Process:
    """A child whose lines are read as they come; gone when the test is."""

    def __init__(self, command: list[str], folder: Path, **environment: str) -> None:
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            env=clean_environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._more = threading.Condition()
        self._lines: list[str] = []
        self._has_ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as lines:
            for line in lines:
                with self._more:
                    self._lines.append(line.rstrip())
                    self._more.notify_all()
        with self._more:
            self._has_ended = True
            self._more.notify_all()

    def wait_for(self, pattern: str | re.Pattern[str]) -> str:
        """Waits for a line, and gives what of it matches."""
        found: re.Match[str] | None = None

        def is_there() -> bool:
            nonlocal found
            found = next((match for line in self._lines if (match := re.search(pattern, line))), None)
            return found is not None or self._has_ended

        with self._more:
            self._more.wait_for(is_there, LIMIT)
        assert found is not None, f"{pattern!r} was not said:\n{self.said}"
        return found.group()

    @property
    def said(self) -> str:
        """Everything so far."""
        return "\n".join(self._lines)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._child.send_signal(number)

    def wait(self) -> int:
        """Waits for the end; the exit code."""
        code = self._child.wait(LIMIT)
        with self._more:
            self._more.wait_for(lambda: self._has_ended, LIMIT)
        return code

    def kill(self) -> None:
        """``kill -9``."""
        self._child.kill()
        self.wait()


class Server(Process):
    """A running ``windlass up``."""

    def __init__(
        self, folder: Path, *arguments: str, store: str | None = None, listen: str = "127.0.0.1:0", **environment: str
    ) -> None:
        self.folder = folder
        store = store or f"sqlite:{folder / 'windlass.db'}"
        command = [str(program()), "up", "--store", store, "--listen", listen, *arguments]
        super().__init__(command, folder, **environment)
        self.url = self.wait_for(_ADDRESS)

    @property
    def listen(self) -> str:
        """Where it listens, for its successor."""
        return self.url.partition("//")[2]


def python_script(script: str, folder: Path, *arguments: str, **environment: str) -> Process:
    """A Python process of its own with our package."""
    path = folder / "script.py"
    path.write_text(script)
    source = Path(__file__).parent.parent / "src"
    return Process([sys.executable, "-u", str(path), *arguments], folder, PYTHONPATH=str(source), **environment)
