"""The PostgreSQL server that everybody runs on."""

import glob
import os
import shutil
from urllib.parse import quote

from .processes import Failed, run

# Where peers put what has no schema of its own.
SCRATCH_SCHEMA = "windlass_bench_peers"
# Where `windlass-scratch` puts the address of the server that it has started.
OWN_URL = "WINDLASS_TEST_POSTGRES"
# Settings of the server that decide what a commit costs.
SHOWN = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "max_connections")


class Server:
    """Questions to the server, and clean schemas for each run."""

    def __init__(self, url):
        self.url = url
        packaged = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"))
        self._psql = shutil.which("psql") or (packaged[-1] if packaged else None)
        if self._psql is None:
            raise Failed("psql is missing; install postgresql-client")

    def peer_url(self):
        """The address under which unqualified names land in the scratch schema."""
        joint = "&" if "?" in self.url else "?"
        return f"{self.url}{joint}options={quote('-c search_path=' + SCRATCH_SCHEMA)}"

    def ask(self, *statements, limit_s=120):
        """Runs statements one by one; answers what they return, one row a line."""
        commands = [word for statement in statements for word in ("-c", statement)]
        argv = [self._psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.peer_url(), *commands]
        return run(argv, limit_s=limit_s, env={"PGCONNECT_TIMEOUT": "10", "PGOPTIONS": ""}).strip()

    def number(self, statement):
        return int(self.ask(statement))

    def facts(self):
        """Version and settings, for the report."""
        version = self.ask("SHOW server_version").split()[0]
        return {"version": version, **{name: self.ask(f"SHOW {name}") for name in SHOWN}}

    def refuse_undurable(self):
        """Without durable commits every figure would be of another kind; servers of tests run so."""
        for name in ("fsync", "synchronous_commit"):
            if self.ask(f"SHOW {name}") == "off":
                raise Failed(f"the server has {name} off; give one with durable commits, or none and unset {OWN_URL}")

    def refuse_foreign(self, schemas):
        """A schema that is there already is somebody's: it must not be dropped."""
        names = ", ".join(f"'{name}'" for name in (*schemas, SCRATCH_SCHEMA))
        found = self.ask(f"SELECT nspname FROM pg_namespace WHERE nspname IN ({names})").split()
        if found:
            raise Failed(f"the database has a schema {found[0]} already; give an empty database of its own")

    def clean(self, schemas):
        """Removes what a run has left."""
        drops = [f"DROP SCHEMA IF EXISTS {name} CASCADE" for name in (*schemas, SCRATCH_SCHEMA)]
        # The sessions of a program that was killed may hold locks until their statement ends.
        self.ask("SET client_min_messages = error", "SET lock_timeout = '60s'", *drops)

    def fresh(self, schemas):
        """Removes what a run has left and makes room for the next."""
        self.clean(schemas)
        self.ask(f"CREATE SCHEMA {SCRATCH_SCHEMA}")

    def settle(self):
        """Statistics and visibility as they are after a while, and as little unwritten as the role may ask for."""
        self.ask("SET client_min_messages = error", "VACUUM ANALYZE")
        try:
            self.ask("CHECKPOINT")
        except Failed:
            pass  # only superusers may; then the server's own rhythm decides, alike for everybody


def own_url():
    """The server that `windlass-scratch` has started around this process, if it has."""
    return os.environ.get(OWN_URL)
