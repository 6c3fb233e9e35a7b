-- Version and settings of the schema itself: schema_version, oldest_writer.
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Figures that would cost a scan; written in the transaction that changes them. One row.
CREATE TABLE figure (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  last_id INTEGER NOT NULL,
  history_rows INTEGER NOT NULL,
  history_bytes INTEGER NOT NULL
) STRICT;

INSERT INTO figure (id, last_id, history_rows, history_bytes) VALUES (1, 0, 0, 0);

-- Interned pairs of queue and kind. Never removed, so that a lane id always means the same.
CREATE TABLE lane (
  id INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  kind TEXT NOT NULL,
  UNIQUE (queue, kind)
) STRICT;

CREATE TABLE paused_queue (
  queue TEXT PRIMARY KEY,
  paused_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: the id of a worker is never used again, which is half of every fence.
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
) STRICT;

CREATE INDEX worker_ended ON worker (ended_at) WHERE ended_at IS NOT NULL;

-- The last batch of each settler and its answer. NULL: no task was fenced and no lane became ready.
CREATE TABLE receipt (
  worker INTEGER NOT NULL,
  settler_no INTEGER NOT NULL,
  batch_no INTEGER NOT NULL,
  answer TEXT,
  PRIMARY KEY (worker, settler_no)
) STRICT, WITHOUT ROWID;

-- Idempotency keys; expires_at is NULL while the task has not ended.
CREATE TABLE key (
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  task INTEGER NOT NULL,
  digest BLOB NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX key_expires ON key (expires_at) WHERE expires_at IS NOT NULL;

-- Tasks that have not ended in success or by cancellation. Codes of states: windlass_core::State::code.
-- due_at is set exactly while a task is scheduled, ended_at exactly while it is dead: a claim changes
-- neither, so it does not touch their indexes. start_at keeps a later start while a step waits for its turn.
-- step is its place in its workflow, drawn from one sequence. The writer keeps in memory which worker runs
-- which task. An index for that cost a sixth of the throughput. The payload comes last, after all columns
-- that are read often.
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
) STRICT;

CREATE INDEX task_ready ON task (lane, priority DESC, ready_seq) WHERE state = 1 AND crashes = 0;
CREATE INDEX task_suspect ON task (lane, priority DESC, ready_seq) WHERE state = 1 AND crashes > 0;
CREATE INDEX task_due ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_dead ON task (ended_at) WHERE ended_at IS NOT NULL;

-- Plain tasks are in none of these indexes. Each state of a job's tasks has its own index. A claim touches
-- only the index of ready tasks, which is small however many tasks are held; the end of a task touches no
-- index. Held tasks are in a table of their own.
CREATE INDEX task_later ON task (job, state) WHERE state IN (0, 4) AND job IS NOT NULL;
CREATE INDEX task_step ON task (workflow, step) WHERE workflow IS NOT NULL AND ended_at IS NULL;

-- The line of held tasks before each job, the best first: rank is the negated priority. Every held task is
-- here. An admitted task stays until the writer reads further in its line; then it removes many rows at once.
-- The lines of two jobs are on different pages: removing each row at once would write a page for every task,
-- as an index of the tasks did.
CREATE TABLE held (
  job TEXT NOT NULL,
  lane INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  id INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  PRIMARY KEY (job, lane, rank, id)
) STRICT, WITHOUT ROWID;

-- What a job admits. over_limit: its limit fell, and it still has more tasks than that. at_limit: the log
-- says that it has more tasks than room. gone_before: the last id that was given out when the job was
-- removed. again_at: when the job needs a turn although no task of it changes. The used room is counted,
-- never stored.
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

-- Workflows with unfinished steps, or blocked ones. Failures of steps up to forgiven_step have no
-- consequence. A workflow whose policy is to cancel is blocked only while its steps up to forgiven_step are
-- being cancelled.
CREATE TABLE workflow (
  name TEXT PRIMARY KEY,
  on_failure INTEGER NOT NULL,
  blocked_by INTEGER,
  forgiven_step INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX workflow_blocked ON workflow (blocked_by) WHERE blocked_by IS NOT NULL;

CREATE TABLE schedule (
  name TEXT PRIMARY KEY,
  spec TEXT NOT NULL,
  paused INTEGER NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_task INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (next_at) WHERE next_at IS NOT NULL AND paused = 0;

-- Done and cancelled tasks. No second index: ids are ordered by time of enqueue, which is never after the
-- end, so retention reads a range of ids. ran: the columns describe a last attempt that is not in the log.
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
