"""Tables of the figures, for people."""

import os
import platform
import re

from .results import COLUMNS

# Which workload fills a column.
WORKLOAD_OF = {"drain": "drain", "p50_ms": "latency", "p99_ms": "latency", "single_8": "callers",
               "single_64": "callers", "bulk": "bulk"}


def figure(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def cell(results, row, column):
    """A figure with the ratios of Windlass to it, or why there is none."""
    value = row.median(column)
    if value is None:
        reason = row.failures.get(WORKLOAD_OF[column])
        return f"failed: {reason}" if reason else "–"
    ratios = results.ratios(row, column)
    return figure(value) + (f" (×{' / ×'.join(f'{ratio:.2f}' for ratio in ratios)})" if ratios else "")


def table(results):
    """Header and rows as lists of cells."""
    header = ["", *(title for _, title, _ in COLUMNS)]
    return [header, *([row.name, *(cell(results, row, column) for column, _, _ in COLUMNS)] for row in results.rows)]


def best_table(results):
    """Windlass beside the best peer of each column."""
    lines = [["", "best peer", "its figure", "Windlass", "ratio"]]
    for column, title, is_less_better in COLUMNS:
        best, ours = results.best_peer(column, is_less_better), results.windlass(column)
        if best is not None:
            ratios = " / ".join(f"×{ratio:.2f}" for ratio in results.ratios(best, column))
            lines.append([title, best.name, figure(best.median(column)), " / ".join(map(figure, ours)) or "–", ratios or "–"])
    return lines


def plain(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)


def markdown(lines):
    rule = ["---"] * len(lines[0])
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in [lines[0], rule, *lines[1:]])


def notes(results):
    return [f"{row.name}: {note}" for row in results.rows for note in row.notes]


def machine():
    """Cores, memory, kernel: nothing that names the machine."""
    memory = re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read())
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory.group(1)) / 2**20) if memory else None,
        "system": f"{platform.system()} {re.match(r'[0-9.]+', platform.release()).group(0)} {platform.machine()}",
    }
