-- The clock of every decision. Functions of their own, so that a test can put another clock in their place.
CREATE FUNCTION windlass.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION windlass.server_started_ms() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT floor(date_part('epoch', pg_postmaster_start_time()) * 1000)::bigint $$;

-- When the transaction of the caller began.
CREATE FUNCTION windlass.began_ms() RETURNS bigint LANGUAGE sql STABLE
AS $$ SELECT floor(date_part('epoch', transaction_timestamp()) * 1000)::bigint $$;

-- One sequence for both orders: the place in the ready line, and the tasks of one millisecond.
CREATE SEQUENCE windlass.seq;

-- Ids count milliseconds from 2024 in their upper bits; the lower 22 tell the tasks of one millisecond apart.
CREATE FUNCTION windlass.task_id(at_ms bigint, seq bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT ((at_ms - 1704067200000) << 22) | (seq & 4194303) $$;

-- The ended attempts of a task with one more; the oldest of more than 50 go. What is no list is forgotten: a task must be
-- able to end whatever somebody wrote there.
CREATE FUNCTION windlass.logged(log jsonb, entry jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
AS $$
  SELECT CASE
      WHEN jsonb_typeof(log) IS DISTINCT FROM 'array' THEN '[]'
      WHEN jsonb_array_length(log) >= 50 THEN log - 0
      ELSE log
    END || jsonb_build_array(entry)
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
  -- Its place in its workflow, from admission on.
  step bigint,
  lane integer NOT NULL,
  priority integer NOT NULL,
  lease integer NOT NULL,
  attempt integer NOT NULL,
  max_attempts integer NOT NULL,
  crashes integer NOT NULL,
  state smallint NOT NULL,
  encoding smallint NOT NULL,
  on_failure smallint,
  -- Held because nobody alive serves its lane.
  parked boolean NOT NULL DEFAULT false,
  -- Its job has a delay, so its start must be noticed.
  paced boolean,
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
-- Only over tasks with a job or a workflow: plain ones do not pay for them.
CREATE INDEX task_job ON windlass.task (job, state, parked, priority DESC, id) WHERE job IS NOT NULL AND state <> 6;
CREATE INDEX task_parked ON windlass.task (lane) WHERE state = 3 AND parked;
CREATE INDEX task_step ON windlass.task (workflow, step, ready_seq) WHERE workflow IS NOT NULL AND state <> 6;

-- Jobs. What a job holds is never stored, always counted. recount: more of it runs than its limit allows, since that fell, or nobody
-- has counted yet.
CREATE TABLE windlass.job (
  name text PRIMARY KEY,
  created_at bigint NOT NULL,
  delay_ms bigint,
  last_start bigint,
  gone_before bigint,
  concurrency integer,
  state smallint NOT NULL,
  recount boolean NOT NULL,
  at_limit boolean NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Workflows that have unfinished steps or are blocked.
CREATE TABLE windlass.workflow (
  name text PRIMARY KEY,
  created_at bigint NOT NULL,
  blocked_by bigint,
  forgiven_step bigint,
  on_failure smallint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX workflow_blocked ON windlass.workflow (name) WHERE blocked_by IS NOT NULL;

-- What is to be looked at: a job (0), a workflow (1), a job whose task has started and that has a delay (2), a job of which n
-- tasks have ended, whose places are to be passed on (3). Appended by whoever changes something, in the same transaction and
-- without a lock; taken by whoever admits. at: not before.
CREATE TABLE windlass.gate_todo (
  at bigint NOT NULL DEFAULT 0,
  kind smallint NOT NULL,
  key text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
CREATE INDEX gate_todo_at ON windlass.gate_todo (at);
CREATE INDEX gate_todo_key ON windlass.gate_todo (key, kind) WHERE kind > 1 OR at > 0;

-- Places that successes left, one row per batch of settlements: which jobs have how many to pass on. A row per job would cost as much
-- as the settlement itself.
CREATE TABLE windlass.freed (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  jobs text[] NOT NULL,
  places bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Recurring tasks. What spec says only the runtime knows.
CREATE TABLE windlass.schedule (
  name text PRIMARY KEY,
  next_at bigint,
  last_at bigint,
  last_task bigint,
  paused boolean NOT NULL,
  spec text NOT NULL
);
CREATE INDEX schedule_next ON windlass.schedule (next_at) WHERE NOT paused AND next_at IS NOT NULL;

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

-- The parts of the history, made ahead of time and dropped whole.
CREATE TABLE windlass.part (
  from_ms bigint PRIMARY KEY,
  until_ms bigint NOT NULL,
  name text NOT NULL UNIQUE
);

-- An empty digest: the key was copied from another store after its task was gone, so nobody knows what it stood for.
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

-- Whether somebody alive takes tasks of a queue and a kind.
CREATE FUNCTION windlass.is_live(lane_queue text, lane_kind text) RETURNS boolean LANGUAGE sql STABLE
AS $$
  SELECT NOT EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = $1)
    AND EXISTS (
      SELECT 1 FROM windlass.worker AS w
      WHERE w.ended_at IS NULL AND $2 = ANY (w.kinds) AND (cardinality(w.queues) = 0 OR $1 = ANY (w.queues))
    )
$$;

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

-- The first parts, so that nothing ends before there is one for it.
DO $$
DECLARE
  hour bigint := floor(date_part('epoch', clock_timestamp()) / 3600);
  start_ms bigint;
BEGIN
  FOR number IN 0..7 LOOP
    start_ms := (hour + number) * 3600000;
    EXECUTE format(
      'CREATE TABLE windlass.history_%s PARTITION OF windlass.history FOR VALUES FROM (%s) TO (%s)', start_ms, start_ms,
      start_ms + 3600000
    );
    INSERT INTO windlass.part (from_ms, until_ms, name) VALUES (start_ms, start_ms + 3600000, 'history_' || start_ms);
  END LOOP;
END
$$;

-- A task's id as people and programs write it: 13 letters and digits that sort like the number.
CREATE FUNCTION windlass.id_text(id bigint) RETURNS text LANGUAGE sql IMMUTABLE
AS $$
  SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (($1 >> (5 * place)) & 31)::integer + 1, 1), '' ORDER BY place DESC)
  FROM generate_series(0, 12) AS place
$$;

-- Refuses a name that would break a line or an index.
CREATE FUNCTION windlass.check_name(what text, name text) RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION '% must not be empty', what USING ERRCODE = 'invalid_parameter_value';
  ELSIF octet_length(name) > 128 THEN
    RAISE EXCEPTION '% %… is % bytes long; at most 128 are allowed', what, to_json(left(name, 40)), octet_length(name)
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF name ~ '[\u0001-\u001f\u007f-\u009f]'
    OR name ~ '^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
    OR name ~ '[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$' THEN
    RAISE EXCEPTION '% % has control characters or spaces at its ends', what, to_json(left(name, 40))
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;

-- Refuses text that is not JSON, or that is nested so deeply that parsers of other languages give up on it.
CREATE FUNCTION windlass.check_json(json_text text) RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  brackets text;
BEGIN
  PERFORM json_text::json;
  -- Few brackets are never deep; nearly every payload ends here.
  IF length(json_text) - length(translate(json_text, '[{', '')) <= 128 THEN
    RETURN;
  END IF;
  brackets := regexp_replace(json_text, '"(?:\\.|[^"\\])*"', '', 'g');
  brackets := translate(regexp_replace(brackets, '[^][{}]', '', 'g'), '{}', '[]');
  -- Each round takes the innermost pairs away.
  FOR level IN 1..128 LOOP
    brackets := replace(brackets, '[]', '');
    EXIT WHEN brackets = '';
  END LOOP;
  IF brackets <> '' THEN
    RAISE EXCEPTION 'payload is nested deeper than 128 levels' USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;

-- Tasks that the transaction of a caller added, until it ends: what can only be known then is done by the trigger below.
-- Never read, so it has no index; a row lives only inside its transaction.
CREATE UNLOGGED TABLE windlass.arrival (
  task bigint NOT NULL,
  lane integer,
  is_ready boolean NOT NULL,
  queue text NOT NULL,
  kind text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- Runs when the caller commits, for each task that it added. Callers may keep their transactions open for long, so this is
-- not done when the task is added:
--   * a new lane is made; until then another who wants the same one would wait,
--   * an idle worker is rung: who is idle now, not who was then,
--   * the tasks of a slow transaction get places at the end of the ready line: claims have passed their old ones.
CREATE FUNCTION windlass.arrive() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  now_ms bigint := windlass.now_ms();
  isolation text := current_setting('transaction_isolation');
  is_late boolean := NEW.is_ready AND now_ms - windlass.began_ms() > 100;
  new_lane integer := NEW.lane;
BEGIN
  DELETE FROM windlass.arrival AS a WHERE a.ctid = NEW.ctid;

  IF new_lane IS NULL THEN
    SELECT l.id INTO new_lane FROM windlass.lane AS l WHERE l.queue = NEW.queue AND l.kind = NEW.kind;
    IF NOT FOUND THEN
      -- One at a time, so that two who make the same lanes in another order do not wait for each other.
      LOCK TABLE windlass.lane IN SHARE ROW EXCLUSIVE MODE;
      INSERT INTO windlass.lane (queue, kind) VALUES (NEW.queue, NEW.kind) ON CONFLICT (queue, kind) DO NOTHING;
      SELECT l.id INTO STRICT new_lane FROM windlass.lane AS l WHERE l.queue = NEW.queue AND l.kind = NEW.kind;
    END IF;
    UPDATE windlass.task AS t
    SET lane = new_lane,
      ready_seq = CASE WHEN is_late AND t.state = 1 THEN nextval('windlass.seq') ELSE t.ready_seq END
    WHERE t.id = NEW.task;
    -- Everybody reads the lanes again and looks.
    PERFORM pg_notify('windlass_{schema}', 'lanes');
    RETURN NULL;
  END IF;

  -- Not where reading the index of tasks could make two callers fail each other: there the task is found a little later.
  IF is_late AND isolation <> 'serializable' THEN
    UPDATE windlass.task AS t SET ready_seq = nextval('windlass.seq') WHERE t.id = NEW.task AND t.state = 1;
  END IF;
  IF NEW.is_ready AND isolation IN ('repeatable read', 'serializable') THEN
    -- Such a caller sees who was idle when it began; so everybody looks.
    PERFORM pg_notify('windlass_{schema}', '*');
  ELSIF NEW.is_ready THEN
    PERFORM pg_notify('windlass_{schema}', d.listener::text)
    FROM (
      SELECT b.listener FROM windlass.doorbell AS b
      WHERE b.armed_until > now_ms AND b.lanes @> ARRAY[new_lane]
      ORDER BY random()
      LIMIT 1
    ) AS d;
  END IF;
  RETURN NULL;
END
$$;
-- Whoever could put it on a table of their own could move tasks with it.
REVOKE EXECUTE ON FUNCTION windlass.arrive() FROM PUBLIC;

CREATE CONSTRAINT TRIGGER arrive AFTER INSERT ON windlass.arrival
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION windlass.arrive();

-- Adds one task inside the transaction of whoever calls. It only appends, and a key that is known is read without a lock: a
-- transaction that stays open holds up nobody but those who want the same new key. Runs with the rights of the schema's
-- owner: a caller needs USAGE on the schema and nothing else.
CREATE FUNCTION windlass.enqueue_task(
  new_kind text, new_encoding smallint, new_payload bytea, new_queue text, new_job text, new_workflow text,
  new_priority integer, new_due_at bigint, new_delay_ms bigint, new_key text, ignore_conflict boolean,
  new_max_attempts integer, new_timeout_ms bigint, new_retry text, new_on_failure smallint, OUT task bigint,
  OUT existing boolean
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  now_ms bigint := windlass.now_ms();
  new_seq bigint := nextval('windlass.seq');
  new_id bigint := windlass.task_id(now_ms, new_seq);
  due_ms bigint := coalesce(now_ms + new_delay_ms, new_due_at);
  payload_max bigint := (SELECT m.value FROM windlass.meta AS m WHERE m.name = 'payload_max_bytes');
  new_lane integer;
  new_digest bytea;
  found_task bigint;
  found_digest bytea;
  found_expires_at bigint;
  is_taken boolean := false;
  new_state smallint;
BEGIN
  PERFORM windlass.check_name('kind', new_kind);
  PERFORM windlass.check_name('queue', new_queue);
  IF new_job IS NOT NULL THEN
    PERFORM windlass.check_name('job', new_job);
  END IF;
  IF new_workflow IS NOT NULL THEN
    PERFORM windlass.check_name('workflow', new_workflow);
  END IF;
  IF octet_length(new_key) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION 'key must have 1 to 256 bytes and no NUL' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_payload IS NULL THEN
    RAISE EXCEPTION 'payload must not be null; for none leave it out' USING ERRCODE = 'invalid_parameter_value';
  ELSIF octet_length(new_payload) > payload_max THEN
    RAISE EXCEPTION 'payload is % bytes; payload_max_bytes in windlass.meta is %', octet_length(new_payload), payload_max
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_encoding IS NULL OR new_encoding NOT IN (0, 1) THEN
    RAISE EXCEPTION 'encoding must be 0 for JSON or 1 for bytes' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_priority IS NULL THEN
    RAISE EXCEPTION 'priority must not be null' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_max_attempts IS NULL OR new_max_attempts NOT BETWEEN 1 AND 1000000 THEN
    RAISE EXCEPTION 'max_attempts must be 1 to 1000000' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_timeout_ms <= 0 THEN
    RAISE EXCEPTION 'timeout must be longer than zero' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_retry !~ '^[0-9]{1,19} [0-9]{1,19} [0-9]{1,9}$' THEN
    RAISE EXCEPTION 'retry must be three numbers' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_on_failure NOT IN (0, 1, 2) THEN
    RAISE EXCEPTION 'on_failure must be block, skip or cancel' USING ERRCODE = 'invalid_parameter_value';
  ELSIF new_on_failure IS NOT NULL AND new_workflow IS NULL THEN
    RAISE EXCEPTION 'on_failure says what becomes of a workflow; name the workflow' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF new_encoding = 0 THEN
    PERFORM windlass.check_json(convert_from(new_payload, 'UTF8'));
  END IF;
  IF due_ms <= now_ms THEN
    due_ms := NULL;
  END IF;
  task := new_id;
  existing := false;

  IF new_key IS NOT NULL THEN
    new_digest := windlass.digest(new_kind, new_encoding, new_payload);
    FOR try IN 1..3 LOOP
      -- Whoever comes second waits here for the first to commit; only a later statement sees what that was.
      INSERT INTO windlass.key (queue, key, task, digest) VALUES (new_queue, new_key, new_id, new_digest)
      ON CONFLICT (queue, key) DO NOTHING;
      is_taken := FOUND;
      EXIT WHEN is_taken;
      SELECT k.task, k.digest, k.expires_at INTO found_task, found_digest, found_expires_at
      FROM windlass.key AS k WHERE k.queue = new_queue AND k.key = new_key;
      -- Forgotten in between: look again.
      CONTINUE WHEN NOT FOUND;
      IF found_expires_at <= now_ms
        AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.id = found_task)
        AND NOT EXISTS (SELECT 1 FROM windlass.history AS h WHERE h.id = found_task) THEN
        UPDATE windlass.key AS k SET task = new_id, digest = new_digest, expires_at = NULL
        WHERE k.queue = new_queue AND k.key = new_key AND k.task = found_task AND k.expires_at <= now_ms;
        is_taken := FOUND;
        EXIT WHEN is_taken;
      ELSIF found_digest <> new_digest AND found_digest <> '' AND ignore_conflict IS NOT TRUE THEN
        RAISE EXCEPTION 'idempotency key % already belongs to task % with another kind or payload', to_json(new_key),
          windlass.id_text(found_task) USING ERRCODE = 'unique_violation', DETAIL = windlass.id_text(found_task);
      ELSE
        task := found_task;
        existing := true;
        RETURN;
      END IF;
    END LOOP;
    IF NOT is_taken THEN
      RAISE EXCEPTION 'idempotency key % changes hands; try again', to_json(new_key) USING ERRCODE = 'serialization_failure';
    END IF;
  END IF;

  SELECT l.id INTO new_lane FROM windlass.lane AS l WHERE l.queue = new_queue AND l.kind = new_kind;
  IF NOT FOUND AND (SELECT count(*) FROM windlass.lane) >= 10000 THEN
    RAISE EXCEPTION 'a store has at most 10000 pairs of queue and kind; use fewer queue names'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- A job or a workflow is not touched: that is decided by admission, in a transaction that does not wait for this one.
  new_state := CASE
    WHEN new_workflow IS NOT NULL THEN 4 WHEN due_ms IS NOT NULL THEN 0 WHEN new_job IS NOT NULL THEN 3 ELSE 1
  END;
  INSERT INTO windlass.task (
    id, ready_seq, due_at, timeout_ms, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, on_failure,
    retry, job, workflow, key, payload
  ) VALUES (
    new_id, CASE WHEN new_state IN (1, 4) THEN new_seq END, due_ms, new_timeout_ms, coalesce(new_lane, 0), new_priority, 0,
    0, new_max_attempts, 0, new_state, new_encoding, new_on_failure, new_retry, new_job, new_workflow, new_key,
    new_payload
  );
  IF new_workflow IS NOT NULL THEN
    INSERT INTO windlass.gate_todo (kind, key) VALUES (1, new_workflow);
  ELSIF new_job IS NOT NULL THEN
    INSERT INTO windlass.gate_todo (kind, key) VALUES (0, new_job);
  END IF;
  IF new_state <> 0 OR new_lane IS NULL THEN
    INSERT INTO windlass.arrival (task, lane, is_ready, queue, kind)
    VALUES (new_id, new_lane, new_state <> 0, new_queue, new_kind);
  END IF;
END
$$;

-- Adds one task from any language, inside the caller's transaction; what is null has its default. Use it as
--   SELECT * FROM windlass.enqueue(kind => 'send_email', payload => '{"to":"a@b.c"}');
CREATE FUNCTION windlass.enqueue(
  kind text, payload json DEFAULT 'null', queue text DEFAULT NULL, job text DEFAULT NULL, workflow text DEFAULT NULL,
  priority integer DEFAULT NULL, run_at timestamp with time zone DEFAULT NULL, key text DEFAULT NULL,
  max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL, ignore_conflict boolean DEFAULT NULL,
  on_failure text DEFAULT NULL, OUT id text, OUT existing boolean
) LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  SELECT windlass.id_text(t.task), t.existing INTO id, existing
  FROM windlass.enqueue_task(
    $1, 0::smallint, convert_to($2::text, 'UTF8'), coalesce($3, 'default'), $4, $5, coalesce($6, 0),
    CASE WHEN isfinite($7) THEN ceil(extract(epoch FROM $7) * 1000)::bigint WHEN $7 > now() THEN 9007199254740991 END,
    NULL, $8, coalesce($11, false), coalesce($9, 10),
    CASE WHEN isfinite($10) THEN ceil(extract(epoch FROM $10) * 1000)::bigint WHEN $10 < interval '0' THEN 0 END, NULL,
    CASE $12 WHEN 'block' THEN 0 WHEN 'skip' THEN 1 WHEN 'cancel' THEN 2 ELSE CASE WHEN $12 IS NOT NULL THEN -1 END END::smallint
  ) AS t;
END
$$;

INSERT INTO windlass.meta (name, value) VALUES ('payload_max_bytes', 1048576);
