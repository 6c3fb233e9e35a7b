-- An error in an argument of enqueue brought the whole text of its inner statement along as CONTEXT: a dozen lines in psql. A function in
-- SQL adds one short line instead. Its arguments and its answer are what they were.

-- What comes after a task was added: the limit of its job if that is new, and a NOTICE if the job is cancelled. Answers false, as the task
-- was not there before.
CREATE FUNCTION windlass.added_to_job(job text, concurrency integer) RETURNS boolean LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF $2 IS NOT NULL THEN
    PERFORM windlass.limit_new_job($1, $2);
  END IF;
  IF $1 IS NOT NULL THEN
    PERFORM windlass.tell_cancelled($1);
  END IF;
  RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION windlass.enqueue(
  kind text, payload json DEFAULT 'null', queue text DEFAULT NULL, job text DEFAULT NULL, workflow text DEFAULT NULL,
  priority integer DEFAULT NULL, run_at timestamp with time zone DEFAULT NULL, key text DEFAULT NULL,
  max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL, ignore_conflict boolean DEFAULT NULL,
  on_failure text DEFAULT NULL, ignore_key_conflict boolean DEFAULT NULL, job_concurrency integer DEFAULT NULL,
  OUT id text, OUT existing boolean
) LANGUAGE sql VOLATILE
AS $$
  SELECT windlass.id_text(t.task),
    CASE
      WHEN t.existing OR ($4 IS NULL AND $14 IS NULL) THEN t.existing
      ELSE windlass.added_to_job($4, $14)
    END
  FROM windlass.enqueue_task(
    $1, 0::smallint, convert_to($2::text, 'UTF8'), coalesce($3, 'default'), $4, $5, coalesce($6, 0),
    CASE WHEN isfinite($7) THEN ceil(extract(epoch FROM $7) * 1000)::bigint WHEN $7 > now() THEN 9007199254740991 END,
    NULL, $8, coalesce($13, $11, false), coalesce($9, 10),
    CASE WHEN isfinite($10) THEN ceil(extract(epoch FROM $10) * 1000)::bigint WHEN $10 < interval '0' THEN 0 END, NULL,
    CASE $12 WHEN 'block' THEN 0 WHEN 'skip' THEN 1 WHEN 'cancel' THEN 2 ELSE CASE WHEN $12 IS NOT NULL THEN -1 END END::smallint
  ) AS t
$$;
