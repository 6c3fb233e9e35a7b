"""Who takes part, and with which settings.

`fast` is the fastest documented configuration that was found for each workload, `default` what a user gets who only
names the database and how many tasks may run at once (24, since most peers start with 1). Settings are handed to the
peer's program as they stand here, and printed in docs/benchmarks.md.
"""

from dataclasses import dataclass

# How many tasks run at once where the peer's own documentation does not call for more.
AT_ONCE = 24
# Connections of a producer in its fast configuration: one for each of the 64 callers gains nothing over this.
PRODUCER_CONNECTIONS = 32


@dataclass(frozen=True, eq=False)  # there is one of each, and its settings have no hash
class Peer:
    """A queue that Windlass is compared with."""

    name: str
    ecosystem: str  # node, rust or python: the folder beside this one that holds its program
    program: str
    package: str  # whose version is pinned there
    remaining: str  # SQL: how many tasks are not done, as one number
    schemas: tuple  # what the peer makes, beside what it puts in the schema of the search path
    keeps: str  # what is left of a done task
    settings: dict  # configuration -> workload -> settings


@dataclass(frozen=True)
class Entry:
    """A row of the table: a peer in one configuration."""

    peer: Peer
    configuration: str

    @property
    def name(self):
        return f"{self.peer.name} ({self.configuration})"

    def settings(self, workload):
        """The settings for a workload, or None if this configuration has nothing of its own to show in it."""
        return self.peer.settings[self.configuration].get(workload)

    def has(self, workload):
        return self.settings(workload) is not None


def _graphile_worker():
    batches = {"completeJobBatchDelay": 0, "failJobBatchDelay": 0}
    return Peer(
        name="graphile-worker",
        ecosystem="node",
        program="graphile-worker.mjs",
        package="graphile-worker",
        remaining="SELECT count(*) FROM graphile_worker._private_jobs",
        schemas=("graphile_worker",),
        keeps="nothing",
        settings={
            "fast": {
                # A fifth more than with 500; beyond 2000 little is gained.
                "drain": {"concurrentJobs": AT_ONCE, "maxPoolSize": 26, "localQueue": {"size": 2000}, **batches},
                "latency": {"concurrentJobs": AT_ONCE, "maxPoolSize": 26, "localQueue": {"size": 500}, **batches},
                "callers": {"maxPoolSize": PRODUCER_CONNECTIONS},
                "bulk": {},
            },
            "default": {
                "drain": {"concurrentJobs": AT_ONCE},
                "latency": {"concurrentJobs": AT_ONCE},
                "callers": {},
            },
        },
    )


def _graphile_worker_rust():
    return Peer(
        name="graphile_worker (Rust)",
        ecosystem="rust",
        program="graphile_worker",
        package="graphile_worker",
        remaining="SELECT count(*) FROM graphile_worker._private_jobs",
        schemas=("graphile_worker",),
        keeps="nothing",
        settings={
            "fast": {
                "drain": {"concurrency": AT_ONCE, "local_queue_size": 5000, "complete_job_batch_delay_ms": 1},
                "latency": {"concurrency": AT_ONCE, "local_queue_size": 1000, "complete_job_batch_delay_ms": 5},
                "callers": {"max_pg_conn": PRODUCER_CONNECTIONS},
                "bulk": {},
            },
            "default": {
                "drain": {"concurrency": AT_ONCE},
                "latency": {"concurrency": AT_ONCE},
                "callers": {},
            },
        },
    )


def _pg_boss():
    burst = {"localConcurrency": 2, "batchSize": 1000, "pollingIntervalSeconds": 0.5, "burstWhenBatchFull": True}
    return Peer(
        name="pg-boss",
        ecosystem="node",
        program="pg-boss.mjs",
        package="pg-boss",
        remaining="SELECT count(*) FROM pgboss.job WHERE name = 'noop' AND state <> 'completed'",
        schemas=("pgboss",),
        keeps="the row",
        settings={
            "fast": {
                "drain": {"work": burst},
                "latency": {
                    "boss": {"useListenNotify": True},
                    "queue": {"notify": True},
                    "work": {"localConcurrency": AT_ONCE},
                },
                "callers": {"boss": {"max": PRODUCER_CONNECTIONS}},
                "bulk": {},
            },
            "default": {
                "drain": {"work": {"localConcurrency": AT_ONCE}},
                "latency": {"work": {"localConcurrency": AT_ONCE}},
                "callers": {},
            },
        },
    )


def _apalis():
    return Peer(
        name="apalis",
        ecosystem="rust",
        program="apalis",
        package="apalis-postgres",
        remaining="SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'",
        schemas=("apalis",),
        keeps="the row",
        settings={
            "fast": {
                # A batch costs more the more tasks wait: with 200,000 this reaches twice the rate of batches of 2,000.
                # Results must be persisted: without that no task is ever marked as done.
                "drain": {"concurrency": AT_ONCE, "batch_size": 10_000, "poll_interval_ms": 10},
                "latency": {"concurrency": AT_ONCE, "batch_size": 100, "pubsub": True},
                "callers": {"max_connections": PRODUCER_CONNECTIONS},
                "bulk": {},
            },
            "default": {
                "drain": {"concurrency": AT_ONCE},
                "latency": {"concurrency": AT_ONCE},
                "callers": {},
            },
        },
    )


def _procrastinate():
    pool = {"min_size": 4, "max_size": 30}
    worker = {"concurrency": AT_ONCE, "delete_jobs": "successful"}
    return Peer(
        name="procrastinate",
        ecosystem="python",
        program="procrastinate_peer.py",
        package="procrastinate",
        remaining="SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'",
        schemas=(),
        keeps="the row (fast: nothing)",
        settings={
            "fast": {
                "drain": {"uvloop": True, "pool": pool, "worker": worker},
                "latency": {"uvloop": True, "pool": pool, "worker": worker},
                "callers": {"uvloop": True, "pool": {"min_size": 4, "max_size": PRODUCER_CONNECTIONS}},
                "bulk": {"uvloop": True},
            },
            "default": {
                "drain": {"worker": {"concurrency": AT_ONCE}},
                "latency": {"worker": {"concurrency": AT_ONCE}},
                "callers": {},
            },
        },
    )


PEERS = (_graphile_worker(), _graphile_worker_rust(), _pg_boss(), _apalis(), _procrastinate())
