"""Programs under a time limit that never outlive the driver."""

import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time

# Longest reason shown in a table.
REASON_MAX = 90


class Failed(Exception):
    """A step that did not work; the text is shown in the table."""


def reason_of(text, fallback):
    """The line of an error output that says most, without addresses and folders of this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|failed|denied|cannot|refused", line, re.IGNORECASE)]
    line = (telling or lines or [fallback])[0 if telling else -1]
    line = re.sub(r"\w+://\S+", "URL", line)
    line = re.sub(r"(?<!\w)/[\w./@-]+/", "", line)
    return line[:REASON_MAX]


class Program:
    """A child in a session of its own; leaving the `with` block ends it and everything that it started."""

    def __init__(self, argv, env=None, cwd=None, limit_s=120):
        self.what = os.path.basename(argv[0])
        self.limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self._errors = tempfile.TemporaryFile(mode="w+", errors="replace")
        try:
            self._child = subprocess.Popen(
                argv, env={**os.environ, **(env or {})}, cwd=cwd, text=True, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        except OSError as error:
            raise Failed(f"{self.what}: {error.strerror}") from error
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The group may hold grandchildren after the child has ended.
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._child.wait()
        self._errors.close()

    def line(self, wait_s=None):
        """The next line; None if `wait_s` passes first. Fails at the time limit and at the program's end."""
        left = self._deadline - time.monotonic()
        patience = left if wait_s is None else min(wait_s, left)
        try:
            line = self._lines.get(timeout=max(0, patience))
        except queue.Empty:
            if wait_s is not None and wait_s <= left:
                return None
            raise Failed(f"not done after {self.limit_s:.0f} s") from None
        if line is None:
            raise Failed(self._why_it_ended())
        return line

    def line_starting_with(self, start, wait_s=None):
        """Skips what the program says besides."""
        until = None if wait_s is None else time.monotonic() + wait_s
        while True:
            line = self.line(None if until is None else max(0, until - time.monotonic()))
            if line is None or line.startswith(start):
                return line

    def close_input(self):
        """Tells the program that its driver wants it to end."""
        self._child.stdin.close()

    def wait(self):
        """Reads to the program's end, which must be a success; answers what it wrote."""
        lines = []
        while True:
            left = self._deadline - time.monotonic()
            try:
                line = self._lines.get(timeout=max(0, left))
            except queue.Empty:
                raise Failed(f"not done after {self.limit_s:.0f} s") from None
            if line is None:
                break
            lines.append(line)
        if self._child.wait() != 0:
            raise Failed(self._why_it_ended())
        return "".join(lines)

    def _why_it_ended(self):
        code = self._child.wait()
        self._errors.seek(0)
        return reason_of(self._errors.read(), f"{self.what} ended with exit code {code}")


def run(argv, env=None, cwd=None, limit_s=120):
    """Runs a program to its end and answers its output."""
    with Program(argv, env, cwd, limit_s) as program:
        program.close_input()
        return program.wait()
