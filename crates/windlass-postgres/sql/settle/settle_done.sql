-- Ends attempts that succeeded and left nothing behind, once per batch number. One statement does all of it, so that it
-- needs no transaction around it. Not for steps of workflows: their turns are passed on under a lock. Admission passes
-- on the places that jobs get back. Only the primary key can serve the fence. $1 worker, $2 settler, $3 batch, $4 tasks
-- in order, $5 their leases, $6 how long a key is remembered, $7 keep all.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), receipt AS (
  INSERT INTO windlass.receipt AS r (worker, settler_no, batch_no)
  SELECT w.id, $2, $3 FROM windlass.worker AS w WHERE w.id = $1 AND w.ended_at IS NULL
  ON CONFLICT (worker, settler_no) DO UPDATE SET batch_no = excluded.batch_no WHERE r.batch_no < excluded.batch_no
  RETURNING r.worker
), gone AS (
  DELETE FROM windlass.task AS t
  USING unnest($4::bigint[], $5::integer[]) AS u (id, lease)
  WHERE t.id = ANY (ARRAY[u.id]) AND t.lease = u.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
    AND t.workflow IS NULL AND EXISTS (SELECT 1 FROM receipt)
  RETURNING t.id, t.claimed_at, t.timeout_ms, t.lane, t.priority, t.lease, t.attempt, t.max_attempts, t.encoding,
    t.job, t.workflow, t.key, t.progress, t.log, t.payload
), {keep_history:
    keep = $7, worker = $1, state = 5, result_encoding = NULL, ran = true, error = NULL, output = NULL, ttl = $6
}, freed AS (
  INSERT INTO windlass.freed (jobs, places)
  SELECT array_agg(f.job), array_agg(f.n)
  FROM (SELECT g.job, count(*) AS n FROM gone AS g WHERE g.job IS NOT NULL GROUP BY g.job) AS f
  HAVING count(*) > 0
  RETURNING id
), fenced AS (
  INSERT INTO windlass.fenced (worker, settler_no, batch_no, task)
  SELECT $1, $2, $3, u.id
  FROM unnest($4::bigint[]) AS u (id)
  WHERE (SELECT count(*) FROM gone) < cardinality($4::bigint[]) AND EXISTS (SELECT 1 FROM receipt)
    AND NOT EXISTS (SELECT 1 FROM gone WHERE gone.id = u.id)
  RETURNING task
)
SELECT EXISTS (SELECT 1 FROM receipt) AS is_new, ARRAY(SELECT task FROM fenced) AS fenced,
  EXISTS (SELECT 1 FROM freed)
