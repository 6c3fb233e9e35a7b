-- Lanes that stand empty are retired: they do not count among those in use, until their next task. A lane keeps its number, which the
-- history and the caches of processes refer to.
ALTER TABLE windlass.lane
  ADD COLUMN idle_since bigint,
  ADD COLUMN retired boolean NOT NULL DEFAULT false;
CREATE INDEX lane_in_use ON windlass.lane (id) WHERE NOT retired;
CREATE INDEX lane_idle ON windlass.lane (id) WHERE idle_since IS NOT NULL;

INSERT INTO windlass.meta (name, value) VALUES ('lanes_max', 10000);

-- Lanes that a look found empty are in use again, because a task enters them. In the order of their numbers, so that two callers do not
-- wait for each other. Waits for the look that retires one of them, and then brings it back. Answers whether it brought one back.
CREATE FUNCTION windlass.wake_lanes(lanes integer[]) RETURNS boolean LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  has_retired boolean;
BEGIN
  -- Before any row: a commit that runs arrive locks the table first, and then waits for rows.
  LOCK TABLE windlass.lane IN ROW EXCLUSIVE MODE;
  SELECT bool_or(l.retired) INTO has_retired
  FROM (
    SELECT i.retired FROM windlass.lane AS i WHERE i.id = ANY ($1) AND i.idle_since IS NOT NULL ORDER BY i.id FOR NO KEY UPDATE
  ) AS l;
  UPDATE windlass.lane AS l SET idle_since = NULL, retired = false WHERE l.id = ANY ($1) AND l.idle_since IS NOT NULL;
  IF has_retired THEN
    -- Everybody reads the lanes again and looks.
    PERFORM pg_notify('windlass_{schema}', 'lanes');
  END IF;
  RETURN coalesce(has_retired, false);
END
$$;

-- As it was, but the commit also brings back a lane that stood empty.
CREATE OR REPLACE FUNCTION windlass.arrive() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  now_ms bigint := windlass.now_ms();
  isolation text := current_setting('transaction_isolation');
  is_late boolean := NEW.is_ready AND now_ms - windlass.began_ms() > 100;
  new_lane integer := NEW.lane;
  is_empty boolean;
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
    is_empty := EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.id = new_lane AND l.idle_since IS NOT NULL);
    IF is_empty THEN
      LOCK TABLE windlass.lane IN SHARE ROW EXCLUSIVE MODE;
      PERFORM windlass.wake_lanes(ARRAY[new_lane]);
    END IF;
    UPDATE windlass.task AS t
    SET lane = new_lane,
      ready_seq = CASE WHEN is_late AND t.state = 1 THEN nextval('windlass.seq') ELSE t.ready_seq END
    WHERE t.id = NEW.task;
    -- Everybody reads the lanes again and looks.
    PERFORM pg_notify('windlass_{schema}', 'lanes');
    RETURN NULL;
  END IF;

  -- The lane was in use when the task was added, and may have been found empty since: this task was not to be seen.
  is_empty := EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.id = new_lane AND l.idle_since IS NOT NULL);
  IF is_empty THEN
    LOCK TABLE windlass.lane IN SHARE ROW EXCLUSIVE MODE;
    PERFORM windlass.wake_lanes(ARRAY[new_lane]);
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

-- As it was, but for lanes that stand empty, and for their bounds.
CREATE OR REPLACE FUNCTION windlass.enqueue_task(
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
  is_empty boolean;
  lanes_max bigint;
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

  SELECT l.id, l.idle_since IS NOT NULL INTO new_lane, is_empty
  FROM windlass.lane AS l WHERE l.queue = new_queue AND l.kind = new_kind;
  IF NOT FOUND THEN
    lanes_max := (SELECT m.value FROM windlass.meta AS m WHERE m.name = 'lanes_max');
    IF (SELECT count(*) FROM windlass.lane AS l WHERE NOT l.retired) >= lanes_max THEN
      RAISE EXCEPTION 'a store has at most % pairs of queue and kind in use; use fewer queue names, or try again when others have been empty for a minute', lanes_max
        USING ERRCODE = 'invalid_parameter_value';
    ELSIF (SELECT count(*) FROM windlass.lane) >= 10 * lanes_max THEN
      RAISE EXCEPTION 'a store keeps at most % pairs of queue and kind; use names that were used before', 10 * lanes_max
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  ELSIF is_empty THEN
    -- The commit brings the lane back: until then another who wants it would wait.
    new_lane := NULL;
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
  INSERT INTO windlass.arrival (task, lane, is_ready, queue, kind)
  VALUES (new_id, new_lane, new_state <> 0, new_queue, new_kind);
END
$$;
