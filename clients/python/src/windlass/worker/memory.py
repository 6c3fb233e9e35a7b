"""How much of its memory this process may still use."""

from __future__ import annotations

from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_KIB = 1024


def usage() -> float:
    """Memory in use as a share of the limit that applies, from 0 to 1: of its control group before the host's. 0 where
    neither can be read."""
    try:
        most = (_GROUP / "memory.max").read_text().strip()
        if most != "max":
            return _share(int((_GROUP / "memory.current").read_text()), int(most))
    except (OSError, ValueError):
        pass
    try:
        host = _figures(Path("/proc/meminfo"))
        return _share((host["MemTotal"] - host["MemAvailable"]) * _KIB, host["MemTotal"] * _KIB)
    except (OSError, ValueError, KeyError):
        return 0.0


def _share(part: int, whole: int) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def _figures(path: Path) -> dict[str, int]:
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {name: int(rest.split()[0]) for name, _, rest in lines if rest.split()}
