"""What was measured: every round of every row, medians, and ratios."""

import statistics
from dataclasses import dataclass, field

# Key, title, and whether less is better.
COLUMNS = (
    ("drain", "drain/s", False),
    ("p50_ms", "pickup p50 ms", True),
    ("p99_ms", "pickup p99 ms", True),
    ("single_8", "single enqueue/s, 8 callers", False),
    ("single_64", "single enqueue/s, 64 callers", False),
    ("bulk", "bulk enqueue/s", False),
)


@dataclass
class Row:
    """One contestant in one configuration."""

    name: str
    is_windlass: bool
    rounds: dict = field(default_factory=dict)  # column -> figures, one a round
    failures: dict = field(default_factory=dict)  # workload -> reason
    notes: list = field(default_factory=list)

    def add(self, figures):
        note = figures.pop("note", None)
        if note and note not in self.notes:
            self.notes.append(note)
        for column, figure in figures.items():
            self.rounds.setdefault(column, []).append(figure)

    def median(self, column):
        figures = self.rounds.get(column)
        return statistics.median(figures) if figures else None


class Results:
    """All rows of one run."""

    def __init__(self, rows):
        self.rows = rows

    def windlass(self, column):
        """Medians of the Windlass rows that have this column, history kept first."""
        return [row.median(column) for row in self.rows if row.is_windlass and row.median(column) is not None]

    def ratios(self, row, column):
        """Windlass to this row; empty if there is nothing to compare."""
        figure = row.median(column)
        if row.is_windlass or not figure:
            return []
        return [ours / figure for ours in self.windlass(column)]

    def best_peer(self, column, is_less_better):
        """The peer's row that is hardest to beat in a column."""
        rows = [row for row in self.rows if not row.is_windlass and row.median(column) is not None]
        pick = min if is_less_better else max
        return pick(rows, key=lambda row: row.median(column)) if rows else None

    def failed(self):
        """What could not be measured, one line each."""
        return [f"{row.name}, {workload}: {reason}" for row in self.rows for workload, reason in row.failures.items()]

    def as_json(self):
        return [
            {
                "name": row.name,
                "is_windlass": row.is_windlass,
                "medians": {column: round(row.median(column), 3) for column in row.rounds},
                "windlass_to_it": {column: [round(r, 3) for r in self.ratios(row, column)] for column in row.rounds},
                "rounds": {column: [round(f, 3) for f in figures] for column, figures in row.rounds.items()},
                "failed": row.failures,
                "notes": row.notes,
            }
            for row in self.rows
        ]

    @classmethod
    def from_json(cls, rows):
        return cls([Row(row["name"], row["is_windlass"], row["rounds"], row["failed"], row["notes"]) for row in rows])
