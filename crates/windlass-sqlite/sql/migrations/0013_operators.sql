-- Bulk runs, and the last calls that changed something. Programs that do not know these tables leave them alone.
CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  running INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX run_running ON run (id) WHERE running = 1;
CREATE TABLE call (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  call TEXT NOT NULL,
  about TEXT NOT NULL,
  result TEXT NOT NULL
) STRICT;
