"""The bars of Windlass against its peers, with only the measurements that they need."""

from dataclasses import asdict, dataclass

from .report import figure

# Callers of the single enqueue that the bar is about.
CALLERS = 64
# Who is measured on which workload. The enqueue leaves procrastinate out: it needs an installation of its own and
# reaches half of apalis, which the whole run shows.
CONTESTS = {
    "drain": ("graphile-worker (fast)",),
    "latency": ("graphile_worker (Rust) (fast)", "graphile-worker (fast)", "apalis (fast)"),
    "callers": ("apalis (fast)", "apalis (default)", "graphile_worker (Rust) (fast)", "graphile-worker (fast)",
                "pg-boss (fast)"),
}


def contest(name):
    """Whether a contestant is measured on a workload."""
    return lambda workload: name in CONTESTS.get(workload, ())


@dataclass(frozen=True)
class Bar:
    """A figure beside its bar; without a value its measurement failed."""

    command: str
    figure: str
    value: float | None
    bar: str
    ok: bool
    detail: str

    def line(self):
        """The columns of scripts/bench-check."""
        value = "failed" if self.value is None else f"{self.value:.3f}"
        verdict = "OK" if self.ok else "SHORT"
        return f"{self.command:<58} {self.figure:<24} {value:>10}  {self.bar:<9} {verdict}\n    {self.detail}"


class Judge:
    """Bars of one run."""

    def __init__(self, results, options):
        self._rows = {row.name: row for row in results.rows}
        self._options = options

    def bars(self, workloads):
        judged = {"drain": self._drain, "latency": self._latency, "callers": self._callers}
        return [bar for workload in workloads for bar in judged[workload]()]

    def _drain(self):
        kept, off = "Windlass (history kept)", "Windlass (history off)"
        peers = CONTESTS["drain"]
        return [
            self._bar("drain", "kept / graphile-worker", ">= 2", lambda x: x >= 2, "drain", kept, peers, max),
            self._bar("drain", "off / graphile-worker", "printed", lambda x: x > 0, "drain", off, peers, max),
        ]

    def _latency(self):
        ours = "Windlass (history kept)"
        return [
            self._bar("latency", "p50 / fastest peer", "<= 0.6", lambda x: x <= 0.6, "p50_ms", ours,
                      CONTESTS["latency"], min),
            self._bar("latency", "p99 ms", "< 10", lambda x: x < 10, "p99_ms", ours),
        ]

    def _callers(self):
        ours, column, peers = "Windlass (history kept)", f"single_{CALLERS}", CONTESTS["callers"]
        apalis = tuple(name for name in peers if name.startswith("apalis"))
        return [
            self._bar("callers", f"{CALLERS} callers / {whom}", ">= 3", lambda x: x >= 3, column, ours, names, max)
            for whom, names in (("apalis", apalis), ("best peer", peers))
        ]

    def _bar(self, workload, name, bar, reaches, column, ours, peers=(), pick=None):
        """Our median by the best median of the peers; by itself where there are none."""
        command = " ".join(["scripts/bench-peers --bars", *self._options, "--only", workload])
        # A peer that could not be measured may have been the best: there is no verdict without it.
        for contestant in (ours, *peers):
            row = self._rows[contestant]
            if row.median(column) is None or workload in row.failures:
                reason = row.failures.get(workload, "not measured")
                return Bar(command, name, None, bar, False, f"{contestant}: {reason}")
        value = self._rows[ours].median(column)
        detail = f"{column}: {ours} {figure(value)}"
        if peers:
            best = pick((self._rows[peer] for peer in peers), key=lambda row: row.median(column))
            detail += f", {best.name} {figure(best.median(column))}"
            value /= best.median(column)
        return Bar(command, name, value, bar, reaches(value), detail)


def as_json(bars):
    return [asdict(bar) for bar in bars]
