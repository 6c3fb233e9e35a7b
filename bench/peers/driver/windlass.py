"""Windlass itself: which commands are run, and which of their figures stand in which column.

`windlass-bench` makes a schema of its own for each run, drops it, and enqueues from another process where that matters.
"""

import json
from dataclasses import dataclass

from .processes import Failed, run
from .workloads import SPACING_MS

# What a bench and the bare loop beside it may take.
LIMIT_S = 600
# Slots of the drain: of tasks that take no time, more may run at once than a worker runs by default, as more may wait in the local queue of a
# peer.
FAST_SLOTS = 4_000


@dataclass(frozen=True)
class Windlass:
    """A row of the table: Windlass with ended tasks kept or not, with slots for the workload or its defaults."""

    history: str  # kept or off
    is_default: bool = False

    @property
    def name(self):
        return "Windlass (default)" if self.is_default else f"Windlass (history {self.history})"

    def has(self, workload):
        """History is written when a task ends, and slots are for a worker that is full: only the drain can tell the difference."""
        return workload == "drain" or (self.history == "kept" and not self.is_default)

    def commands(self, workload, sizes):
        """Arguments of `windlass-bench`, and how its figures map to columns."""
        if workload == "drain":
            arguments = ["drain", "--tasks", str(sizes.tasks), "--history", self.history, "--rounds", "1"]
            if not self.is_default:
                arguments += ["--slots", str(FAST_SLOTS)]
            return [(arguments, {"per_second": "drain"})]
        if workload == "latency":
            arguments = ["latency", "--tasks", str(sizes.latency_tasks), "--spacing-ms", str(SPACING_MS)]
            return [(arguments, {"p50_ms": "p50_ms", "p99_ms": "p99_ms"})]
        if workload == "callers":
            return [
                (["enqueue", "--callers", str(callers), "--rounds", "1"], {"single_per_second": f"single_{callers}"})
                for callers in sizes.callers
            ]
        return [(["enqueue", "--rounds", "1"], {"batch_per_second": "bulk"})]


@dataclass(frozen=True)
class WindlassRun:
    """One row on one workload."""

    binary: str
    url: str
    entry: Windlass
    sizes: object

    def figures(self, workload):
        figures = {}
        for arguments, columns in self.entry.commands(workload, self.sizes):
            output = run([self.binary, *arguments, "--store", self.url, "--json"], limit_s=LIMIT_S)
            answer = json.loads([line for line in output.splitlines() if line.startswith("{")][-1])
            for key, column in columns.items():
                if key not in answer:
                    raise Failed(f"windlass-bench {arguments[0]} prints no {key}")
                figures[column] = float(answer[key])
        return figures


ENTRIES = (Windlass("kept"), Windlass("off"), Windlass("kept", is_default=True))
