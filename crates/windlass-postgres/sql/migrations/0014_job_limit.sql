-- An enqueue may give the limit of a job that is not there yet. It touches no job: the limit waits in gate_todo as kind 4, under the
-- index of the kinds above 1, until an admission makes the job.
ALTER TABLE windlass.gate_todo ADD COLUMN concurrency integer;

-- Gives the limit of a job that the transaction of the caller uses first; a job that is there keeps its own. Runs with the rights of the
-- schema's owner, as enqueue_task does.
CREATE FUNCTION windlass.limit_new_job(job text, concurrency integer) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF job IS NULL THEN
    RAISE EXCEPTION 'job_concurrency is the limit of a job; name the job' USING ERRCODE = 'invalid_parameter_value';
  ELSIF concurrency IS NULL OR concurrency < 1 THEN
    RAISE EXCEPTION 'job_concurrency must be 1 or more' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM windlass.check_name('job', job);
  INSERT INTO windlass.gate_todo (kind, key, concurrency) VALUES (4, job, concurrency);
  RETURN true;
END
$$;

-- The same function with one more argument. With both of them a call that leaves it out would be ambiguous, so the old one goes.
DROP FUNCTION windlass.enqueue(
  text, json, text, text, text, integer, timestamp with time zone, text, integer, interval, boolean, text, boolean
);
CREATE FUNCTION windlass.enqueue(
  kind text, payload json DEFAULT 'null', queue text DEFAULT NULL, job text DEFAULT NULL, workflow text DEFAULT NULL,
  priority integer DEFAULT NULL, run_at timestamp with time zone DEFAULT NULL, key text DEFAULT NULL,
  max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL, ignore_conflict boolean DEFAULT NULL,
  on_failure text DEFAULT NULL, ignore_key_conflict boolean DEFAULT NULL, job_concurrency integer DEFAULT NULL,
  OUT id text, OUT existing boolean
) LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  SELECT windlass.id_text(t.task), t.existing INTO id, existing
  FROM windlass.enqueue_task(
    $1, 0::smallint, convert_to($2::text, 'UTF8'), coalesce($3, 'default'), $4, $5, coalesce($6, 0),
    CASE WHEN isfinite($7) THEN ceil(extract(epoch FROM $7) * 1000)::bigint WHEN $7 > now() THEN 9007199254740991 END,
    NULL, $8, coalesce($13, $11, false), coalesce($9, 10),
    CASE WHEN isfinite($10) THEN ceil(extract(epoch FROM $10) * 1000)::bigint WHEN $10 < interval '0' THEN 0 END, NULL,
    CASE $12 WHEN 'block' THEN 0 WHEN 'skip' THEN 1 WHEN 'cancel' THEN 2 ELSE CASE WHEN $12 IS NOT NULL THEN -1 END END::smallint
  ) AS t;
  IF $14 IS NOT NULL AND NOT existing THEN
    PERFORM windlass.limit_new_job($4, $14);
  END IF;
  IF $4 IS NOT NULL AND NOT existing THEN
    PERFORM windlass.tell_cancelled($4);
  END IF;
END
$$;
