-- The clock of every decision. Functions of their own, so that a test can put another clock in their place.
CREATE FUNCTION windlass.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION windlass.server_started_ms() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT floor(date_part('epoch', pg_postmaster_start_time()) * 1000)::bigint $$;

-- One sequence for both orders: the place in the ready line, and the tasks of one millisecond.
CREATE SEQUENCE windlass.seq;

-- Ids count milliseconds from 2024 in their upper bits; the lower 22 tell the tasks of one millisecond apart.
CREATE FUNCTION windlass.task_id(at_ms bigint, seq bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT ((at_ms - 1704067200000) << 22) | (seq & 4194303) $$;

-- The ended attempts of a task with one more; the oldest of more than 50 go.
CREATE FUNCTION windlass.logged(log jsonb, entry jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
AS $$
  SELECT CASE WHEN jsonb_array_length(coalesce(log, '[]')) >= 50 THEN log - 0 ELSE coalesce(log, '[]') END
    || jsonb_build_array(entry)
$$;

-- What a key stands for: kind, encoding and payload.
CREATE FUNCTION windlass.digest(kind text, encoding smallint, payload bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT sha256(convert_to(kind, 'UTF8') || '\x00'::bytea || convert_to(encoding::text, 'UTF8') || '\x00'::bytea || payload) $$;

CREATE TABLE windlass.meta (
  name text PRIMARY KEY,
  value bigint NOT NULL
);

CREATE TABLE windlass.lane (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue text NOT NULL,
  kind text NOT NULL,
  UNIQUE (queue, kind)
);

CREATE TABLE windlass.paused_queue (
  queue text PRIMARY KEY,
  paused_at bigint NOT NULL
);

-- What is not finished. Fixed-width columns first, so that no padding is stored.
CREATE TABLE windlass.task (
  id bigint PRIMARY KEY,
  ready_seq bigint,
  due_at bigint,
  claimed_at bigint,
  ended_at bigint,
  worker bigint,
  claim_no bigint,
  timeout_ms bigint,
  lane integer NOT NULL,
  priority integer NOT NULL,
  lease integer NOT NULL,
  attempt integer NOT NULL,
  max_attempts integer NOT NULL,
  crashes integer NOT NULL,
  state smallint NOT NULL,
  encoding smallint NOT NULL,
  retry text,
  job text,
  workflow text,
  key text,
  cancel text,
  progress text,
  error text,
  log jsonb,
  payload bytea NOT NULL
) WITH (
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 200000,
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 200000,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX task_ready ON windlass.task (lane, priority DESC, ready_seq) WHERE state = 1 AND crashes = 0;
CREATE INDEX task_suspect ON windlass.task (lane, priority DESC, ready_seq) WHERE state = 1 AND crashes > 0;
CREATE INDEX task_running ON windlass.task (worker) WHERE state = 2;
CREATE INDEX task_running_suspect ON windlass.task (worker) WHERE state = 2 AND crashes > 0;
CREATE INDEX task_cancel ON windlass.task (worker) WHERE state = 2 AND cancel IS NOT NULL;
CREATE INDEX task_due ON windlass.task (due_at, id) WHERE state = 0;
CREATE INDEX task_dead ON windlass.task (ended_at, id) WHERE state = 6;

-- What is finished and kept, by the day of its end. Rows that fit no partition go to the last one: a settlement never
-- fails for want of a partition.
CREATE TABLE windlass.history (
  id bigint NOT NULL,
  started_at bigint,
  ended_at bigint NOT NULL,
  worker bigint,
  timeout_ms bigint,
  lane integer NOT NULL,
  priority integer NOT NULL,
  lease integer NOT NULL,
  attempt integer NOT NULL,
  max_attempts integer NOT NULL,
  state smallint NOT NULL,
  encoding smallint NOT NULL,
  output_encoding smallint,
  ran boolean NOT NULL,
  job text,
  workflow text,
  key text,
  progress text,
  error text,
  log jsonb,
  output bytea,
  payload bytea NOT NULL
) PARTITION BY RANGE (ended_at);
CREATE INDEX history_id ON windlass.history (id);
CREATE TABLE windlass.history_rest PARTITION OF windlass.history DEFAULT;

CREATE TABLE windlass.key (
  queue text NOT NULL,
  key text NOT NULL,
  task bigint NOT NULL,
  digest bytea NOT NULL,
  expires_at bigint,
  PRIMARY KEY (queue, key)
);
CREATE INDEX key_expires ON windlass.key (expires_at) WHERE expires_at IS NOT NULL;

-- One row per registration, renewed in place: no indexed column changes at a renewal.
CREATE TABLE windlass.worker (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lease_ttl_ms bigint NOT NULL,
  min_claim_no bigint NOT NULL,
  registered_at bigint NOT NULL,
  renewed_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  ended_at bigint,
  crowd integer,
  pid integer NOT NULL,
  slots integer NOT NULL,
  available integer NOT NULL,
  in_flight integer NOT NULL,
  draining boolean NOT NULL,
  host text NOT NULL,
  version text NOT NULL,
  kinds text[] NOT NULL,
  queues text[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX worker_live ON windlass.worker (id) WHERE ended_at IS NULL;
CREATE INDEX worker_ended ON windlass.worker (ended_at) WHERE ended_at IS NOT NULL;

-- The last batch of each settler, and which tasks of it had been lost.
CREATE TABLE windlass.receipt (
  worker bigint NOT NULL,
  settler_no integer NOT NULL,
  batch_no bigint NOT NULL,
  PRIMARY KEY (worker, settler_no)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE TABLE windlass.fenced (
  worker bigint NOT NULL,
  settler_no integer NOT NULL,
  batch_no bigint NOT NULL,
  task bigint NOT NULL,
  PRIMARY KEY (worker, settler_no, batch_no, task)
);

-- Idle workers that want to be rung. Only hints, so nothing of it needs to survive a crash of the server.
CREATE UNLOGGED TABLE windlass.doorbell (
  listener bigint PRIMARY KEY,
  armed_until bigint NOT NULL,
  lanes integer[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Tasks that somebody waits for while history is off.
CREATE UNLOGGED TABLE windlass.awaited (
  task bigint PRIMARY KEY,
  until bigint NOT NULL
);

-- Who does what only one may do, under a term that the database issues.
CREATE TABLE windlass.leader (
  id smallint PRIMARY KEY CHECK (id = 1),
  term bigint NOT NULL,
  holder bigint NOT NULL,
  expires_at bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO windlass.leader (id, term, holder, expires_at) VALUES (1, 0, 0, 0);

-- Figures that the leader counts from time to time; nothing is counted on the way of a task.
CREATE TABLE windlass.depth (
  lane integer NOT NULL,
  state smallint NOT NULL,
  n bigint NOT NULL,
  counted_at bigint NOT NULL,
  PRIMARY KEY (lane, state)
);
