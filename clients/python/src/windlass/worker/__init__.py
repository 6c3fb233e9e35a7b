"""The worker and what its handlers see."""

from windlass.worker.context import CancelReason, Context
from windlass.worker.engine import Stats
from windlass.worker.worker import Worker

__all__ = ["CancelReason", "Context", "Stats", "Worker"]
