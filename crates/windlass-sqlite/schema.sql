CREATE TABLE call (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  call TEXT NOT NULL,
  about TEXT NOT NULL,
  result TEXT NOT NULL
) STRICT;
CREATE TABLE figure (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  last_id INTEGER NOT NULL,
  history_rows INTEGER NOT NULL,
  history_bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE held (
  job TEXT NOT NULL,
  lane INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  id INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  PRIMARY KEY (job, lane, rank, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE history (
  id INTEGER PRIMARY KEY,
  lane INTEGER NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  ran INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER NOT NULL,
  lease INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  worker INTEGER,
  timeout_ms INTEGER,
  job TEXT,
  workflow TEXT,
  key TEXT,
  progress TEXT,
  error TEXT,
  log TEXT,
  output_encoding INTEGER,
  output BLOB,
  encoding INTEGER NOT NULL,
  payload BLOB NOT NULL
) STRICT;
CREATE TABLE job (
  name TEXT PRIMARY KEY,
  state INTEGER NOT NULL,
  concurrency INTEGER,
  delay_ms INTEGER,
  last_start INTEGER,
  over_limit INTEGER NOT NULL,
  at_limit INTEGER NOT NULL,
  gone_before INTEGER,
  again_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE key (
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  task INTEGER NOT NULL,
  digest BLOB NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_expires ON key (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE lane (
  id INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  kind TEXT NOT NULL, retired INTEGER NOT NULL DEFAULT 0,
  UNIQUE (queue, kind)
) STRICT;
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE paused_queue (
  queue TEXT PRIMARY KEY,
  paused_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE receipt (
  worker INTEGER NOT NULL,
  settler_no INTEGER NOT NULL,
  batch_no INTEGER NOT NULL,
  answer TEXT,
  PRIMARY KEY (worker, settler_no)
) STRICT, WITHOUT ROWID;
CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  running INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX run_running ON run (id) WHERE running = 1;
CREATE TABLE schedule (
  name TEXT PRIMARY KEY,
  spec TEXT NOT NULL,
  paused INTEGER NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_task INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (next_at) WHERE next_at IS NOT NULL AND paused = 0;
CREATE TABLE session (
  id TEXT PRIMARY KEY,
  token TEXT NOT NULL,
  hash BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_expires ON session (expires_at);
CREATE INDEX session_token ON session (token, created_at);
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  lane INTEGER NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  ready_seq INTEGER,
  due_at INTEGER,
  ended_at INTEGER,
  lease INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  worker INTEGER,
  claim_no INTEGER,
  claimed_at INTEGER,
  timeout_ms INTEGER,
  retry TEXT,
  job TEXT,
  workflow TEXT,
  step INTEGER,
  on_failure INTEGER,
  start_at INTEGER,
  key TEXT,
  cancel TEXT,
  progress TEXT,
  error TEXT,
  log TEXT,
  encoding INTEGER NOT NULL,
  payload BLOB NOT NULL
, trace TEXT, suspect INTEGER, aside INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX task_dead ON task (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX task_due ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_later ON task (job, state) WHERE state IN (0, 4) AND job IS NOT NULL;
CREATE INDEX task_ready ON task (lane, priority DESC, ready_seq, crashes) WHERE state = 1 AND crashes < 2;
CREATE INDEX task_step ON task (workflow, step) WHERE workflow IS NOT NULL AND ended_at IS NULL;
CREATE INDEX task_suspect ON task (lane) WHERE crashes >= 2 AND ended_at IS NULL;
CREATE TABLE token (
  id TEXT PRIMARY KEY,
  name TEXT,
  hash BLOB NOT NULL,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
, bound TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE worker (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  version TEXT NOT NULL,
  kinds TEXT NOT NULL,
  queues TEXT NOT NULL,
  slots INTEGER NOT NULL,
  lease_ttl_ms INTEGER NOT NULL,
  min_claim_no INTEGER NOT NULL,
  registered_at INTEGER NOT NULL,
  renewed_at INTEGER NOT NULL,
  ended_at INTEGER
, memory_usage REAL NOT NULL DEFAULT 0, factor REAL NOT NULL DEFAULT 1, reason TEXT NOT NULL DEFAULT '', remote INTEGER NOT NULL DEFAULT 0, owner TEXT, counts TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX worker_ended ON worker (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE workflow (
  name TEXT PRIMARY KEY,
  on_failure INTEGER NOT NULL,
  blocked_by INTEGER,
  forgiven_step INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX workflow_blocked ON workflow (blocked_by) WHERE blocked_by IS NOT NULL;
