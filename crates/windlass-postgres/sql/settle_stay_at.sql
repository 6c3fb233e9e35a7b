-- The same as settle_stay.sql for tasks that all go on in the same way, or all die, that have neither job nor workflow and are where their
-- claim put them, once per batch number: all in one statement, so that it needs no transaction around it. One that is not found there
-- (moved, lost, asked to end, behind a gate after all, retried with its attempts spent) is looked for by its id afterwards; what lies in its place by now has another id.
-- $1 worker, $2 settler, $3 batch, $4 tasks, $5 their leases, $6 how (not 3: who is released has a place to draw in the order of the
-- tasks), $7 due times or nothing, $8 the error if it is the same for all, $9 places, ascending, with the others in that order, $10 the lease
-- if it is the same for all, $11 errors where they differ. Answers whether the batch is new, what was not found, and, unless they die, when the
-- next of all other tasks is due.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), receipt AS (
  INSERT INTO windlass.receipt AS r (worker, settler_no, batch_no)
  SELECT w.id, $2, $3 FROM windlass.worker AS w WHERE w.id = $1 AND w.ended_at IS NULL
  ON CONFLICT (worker, settler_no) DO UPDATE SET batch_no = excluded.batch_no WHERE r.batch_no < excluded.batch_no
  RETURNING r.worker
), stayed AS (
  -- What was asked for of a place is found by halves, as in settle_done_at.sql.
  UPDATE windlass.task AS t
  SET
    state = CASE $6::smallint WHEN 6 THEN 6 ELSE 0 END,
    ready_seq = NULL,
    paced = NULL,
    due_at = ($7::bigint[])[width_bucket(t.ctid, $9::tid[])],
    ended_at = CASE $6::smallint WHEN 6 THEN (SELECT now FROM clock) END,
    attempt = CASE $6::smallint WHEN 2 THEN greatest(t.attempt - 1, 0) ELSE t.attempt END,
    crashes = 0,
    error = CASE $6::smallint WHEN 2 THEN t.error ELSE coalesce($8, ($11::text[])[width_bucket(t.ctid, $9::tid[])]) END,
    -- Written as text and read from there: to make it of its parts costs the server more. Most have none yet, and many may fail
    -- at once: the first entry is written without a function of ours.
    log = CASE
      WHEN t.log IS NULL THEN concat(
        '[[', t.attempt, ',', t.lease, ',', $1, ',', coalesce(t.claimed_at::text, 'null'), ',', (SELECT now FROM clock), ',', $6::smallint, ',',
        coalesce((SELECT to_json($8)::text), to_json(($11::text[])[width_bucket(t.ctid, $9::tid[])])::text, 'null'), ']]'
      )::jsonb
      ELSE windlass.logged(t.log, jsonb_build_array(
        t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock), $6::smallint,
        coalesce($8, ($11::text[])[width_bucket(t.ctid, $9::tid[])])
      ))
    END
  WHERE t.ctid = ANY ($9::tid[]) AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1 AND t.cancel IS NULL
    AND t.job IS NULL AND t.workflow IS NULL AND ($6::smallint <> 1 OR t.attempt < t.max_attempts)
    AND t.id = ($4::bigint[])[width_bucket(t.ctid, $9::tid[])]
    AND t.lease = coalesce($10, ($5::integer[])[width_bucket(t.ctid, $9::tid[])])
    AND EXISTS (SELECT 1 FROM receipt)
  RETURNING t.id
), fenced AS (
  INSERT INTO windlass.fenced (worker, settler_no, batch_no, task)
  SELECT $1, $2, $3, u.id
  FROM unnest($4::bigint[]) AS u (id)
  WHERE (SELECT count(*) FROM stayed) < cardinality($4::bigint[]) AND EXISTS (SELECT 1 FROM receipt)
    AND NOT EXISTS (SELECT 1 FROM stayed WHERE stayed.id = u.id)
  RETURNING task
)
SELECT EXISTS (SELECT 1 FROM receipt) AS is_new, ARRAY(SELECT task FROM fenced) AS fenced,
  CASE WHEN $6::smallint <> 6 THEN least(
    (SELECT t.due_at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1),
    (SELECT g.at FROM windlass.gate_todo AS g WHERE g.at > 0 ORDER BY g.at LIMIT 1)
  ) END AS next_due
