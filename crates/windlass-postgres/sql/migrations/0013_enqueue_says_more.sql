-- The option that is called ignore_key_conflict everywhere has that name here too (ignore_conflict goes on to work), and a caller who adds
-- a task to a cancelled job gets a NOTICE. A function cannot get an argument: it is made anew, with the arguments that it had in their
-- places.
DROP FUNCTION windlass.enqueue(
  text, json, text, text, text, integer, timestamp with time zone, text, integer, interval, boolean, text
);

-- Says that a job is cancelled. It reads the job without a lock, with the rights of the schema's owner: a caller needs USAGE on the
-- schema and nothing else.
CREATE FUNCTION windlass.tell_cancelled(job text) RETURNS void LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM windlass.job AS j WHERE j.name = $1 AND j.state = 2) THEN
    RAISE NOTICE 'job % is cancelled, and the task with it', to_json($1)
      USING HINT = 'windlass jobs resume lets tasks in again';
  END IF;
END
$$;

-- Adds one task from any language, inside the caller's transaction; what is null has its default. Use it as
--   SELECT * FROM windlass.enqueue(kind => 'send_email', payload => '{"to":"a@b.c"}');
CREATE FUNCTION windlass.enqueue(
  kind text, payload json DEFAULT 'null', queue text DEFAULT NULL, job text DEFAULT NULL, workflow text DEFAULT NULL,
  priority integer DEFAULT NULL, run_at timestamp with time zone DEFAULT NULL, key text DEFAULT NULL,
  max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL, ignore_conflict boolean DEFAULT NULL,
  on_failure text DEFAULT NULL, ignore_key_conflict boolean DEFAULT NULL, OUT id text, OUT existing boolean
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
  IF $4 IS NOT NULL AND NOT existing THEN
    PERFORM windlass.tell_cancelled($4);
  END IF;
END
$$;
