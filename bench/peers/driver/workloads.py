"""One workload on one peer: what is called in which order, and what the database says afterwards."""

import json
import time

from .processes import Failed, Program

PAYLOAD_BYTES = 120
# Tasks per bulk call.
BATCH = 10_000
# Enqueues before the measured ones: of a trickle, and of each of many callers.
TRICKLE_WARM_UP, CALLER_WARM_UP = 50, 2
# Pause before each enqueue of the latency workload.
SPACING_MS = 20
# How long a worker stays idle before the first enqueue, and how long it may take to catch up after the last.
IDLE_S, CATCH_UP_S = 1, 5
# What preparation and the process around the measured part may take.
SLACK_S = 180

WORKLOADS = ("drain", "latency", "callers", "bulk")
# Concurrent callers of the single enqueue.
CALLERS = (8, 64)


class PeerRun:
    """One entry of the table on one workload, in schemas of its own."""

    def __init__(self, server, entry, argv, sizes):
        self._server, self._entry, self._argv, self._sizes = server, entry, argv, sizes

    def figures(self, workload):
        """The columns that this workload fills, or a failure."""
        return {"drain": self._drain, "latency": self._latency, "callers": self._callers, "bulk": self._bulk}[workload]()

    def _program(self, command, workload, budget_s=0, **plan):
        plan = {"command": command, "settings": self._entry.settings(workload), "budget_s": budget_s, "batch": BATCH,
                "payload_bytes": PAYLOAD_BYTES, "remaining": self._entry.peer.remaining, **plan}
        return Program([*self._argv, json.dumps(plan)], env={"DATABASE_URL": self._server.peer_url()},
                       limit_s=budget_s + SLACK_S)

    def _answer(self, *arguments, **plan):
        with self._program(*arguments, **plan) as program:
            return json.loads(program.line_starting_with("{"))

    def _prepare(self, workload, tasks=0):
        self._server.fresh(self._entry.peer.schemas)
        self._answer("prepare", workload, tasks=tasks)
        self._expect(tasks, "after the backlog was loaded")
        self._server.settle()

    def _remaining(self):
        return self._server.number(self._entry.peer.remaining)

    def _expect(self, tasks, when):
        found = self._remaining()
        if found != tasks:
            raise Failed(f"the database has {found} waiting tasks {when}, not {tasks}")

    def _drain(self):
        tasks = self._sizes.tasks
        self._prepare("drain", tasks)
        said = self._answer("drain", "drain", tasks=tasks, budget_s=self._sizes.drain_s)
        done = tasks - self._remaining()
        if done < said["done"]:
            raise Failed(f"the database has {done} done tasks, not {said['done']}")
        figures = {"drain": said["done"] / said["seconds"]}
        if said["done"] < tasks:
            figures["note"] = f"drain: {said['done']} of {tasks} done in {said['seconds']:.0f} s"
        return figures

    def _latency(self):
        tasks = self._sizes.latency_tasks
        self._prepare("latency")
        budget_s = tasks * (SPACING_MS + 20) / 1000 + CATCH_UP_S
        with self._program("listen", "latency", tasks=tasks, budget_s=budget_s) as worker:
            worker.line_starting_with("READY")
            time.sleep(IDLE_S)
            self._answer("trickle", "latency", tasks=tasks, budget_s=budget_s, spacing_ms=SPACING_MS,
                         warm_up=TRICKLE_WARM_UP)
            answer = worker.line_starting_with("{", wait_s=CATCH_UP_S)
            if answer is None:
                worker.close_input()
                answer = worker.line_starting_with("{")
        times = sorted(json.loads(answer)["latencies_ms"])
        if not times:
            raise Failed(f"no task was started within {CATCH_UP_S} s")
        figures = {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}
        if len(times) < tasks:
            figures["note"] = f"latency: falls behind, {len(times)} of {tasks} started {CATCH_UP_S} s after the last enqueue"
        return figures

    def _callers(self):
        figures = {}
        for callers in self._sizes.callers:
            self._prepare("callers")
            said = self._answer("callers", "callers", callers=callers, warm_up=CALLER_WARM_UP,
                                budget_s=self._sizes.callers_s)
            self._expect(said["tasks"] + said["warm_up"], "after single enqueues")
            figures[f"single_{callers}"] = said["tasks"] / said["seconds"]
        return figures

    def _bulk(self):
        self._prepare("bulk")
        said = self._answer("bulk", "bulk", tasks=self._sizes.tasks)
        self._expect(said["tasks"], "after bulk enqueues")
        return {"bulk": said["tasks"] / said["seconds"]}


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
