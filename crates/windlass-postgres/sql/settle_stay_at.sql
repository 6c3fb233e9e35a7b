-- The same as settle_stay.sql for tasks that have neither job nor workflow and are where their claim put them, once per batch number:
-- all in one statement, so that it needs no transaction around it. One that is not found there (moved, lost, asked to end, behind a
-- gate after all) is looked for by its id afterwards.
-- $1 worker, $2 settler, $3 batch, $4 tasks in order, $5 their leases, $6 how, $7 due times, $8 errors, $9 places in the order of the
-- tasks. Answers whether the batch is new, what was not found, which lanes have ready tasks now, and when the next task is due, if any
-- of these is.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), receipt AS (
  INSERT INTO windlass.receipt AS r (worker, settler_no, batch_no)
  SELECT w.id, $2, $3 FROM windlass.worker AS w WHERE w.id = $1 AND w.ended_at IS NULL
  ON CONFLICT (worker, settler_no) DO UPDATE SET batch_no = excluded.batch_no WHERE r.batch_no < excluded.batch_no
  RETURNING r.worker
), item AS MATERIALIZED (
  SELECT u.id, u.lease, u.how, u.due_at, u.error, u.place, CASE u.how WHEN 3 THEN nextval('windlass.seq') END AS ready_seq
  FROM unnest($4::bigint[], $5::integer[], $6::smallint[], $7::bigint[], $8::text[], $9::tid[])
    AS u (id, lease, how, due_at, error, place)
), stayed AS (
  UPDATE windlass.task AS t
  SET
    state = CASE item.how WHEN 3 THEN 1 WHEN 6 THEN 6 ELSE 0 END,
    ready_seq = item.ready_seq,
    paced = NULL,
    due_at = item.due_at,
    ended_at = CASE item.how WHEN 6 THEN (SELECT now FROM clock) END,
    attempt = CASE WHEN item.how IN (2, 3) THEN greatest(t.attempt - 1, 0) ELSE t.attempt END,
    crashes = CASE item.how WHEN 3 THEN t.crashes ELSE 0 END,
    error = CASE WHEN item.how IN (1, 6) THEN item.error ELSE t.error END,
    log = CASE
      WHEN t.log IS NULL THEN jsonb_build_array(jsonb_build_array(
        t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock), item.how, item.error
      ))
      ELSE windlass.logged(t.log, jsonb_build_array(
        t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock), item.how, item.error
      ))
    END
  FROM item
  WHERE t.ctid = item.place AND t.id + 0 = item.id AND t.lease = item.lease AND t.state + 0 = 2
    AND t.worker IS NOT DISTINCT FROM $1 AND t.cancel IS NULL AND t.job IS NULL AND t.workflow IS NULL
    AND EXISTS (SELECT 1 FROM receipt)
  RETURNING t.id, t.lane, t.state, t.due_at
), fenced AS (
  INSERT INTO windlass.fenced (worker, settler_no, batch_no, task)
  SELECT $1, $2, $3, u.id
  FROM unnest($4::bigint[]) AS u (id)
  WHERE (SELECT count(*) FROM stayed) < cardinality($4::bigint[]) AND EXISTS (SELECT 1 FROM receipt)
    AND NOT EXISTS (SELECT 1 FROM stayed WHERE stayed.id = u.id)
  RETURNING task
)
SELECT EXISTS (SELECT 1 FROM receipt) AS is_new, ARRAY(SELECT task FROM fenced) AS fenced,
  ARRAY(SELECT DISTINCT s.lane FROM stayed AS s WHERE s.state = 1) AS lanes,
  (
    SELECT least(min(s.due_at), (SELECT t.due_at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1),
      (SELECT g.at FROM windlass.gate_todo AS g WHERE g.at > 0 ORDER BY g.at LIMIT 1))
    FROM stayed AS s
    HAVING min(s.due_at) IS NOT NULL
  ) AS next_due
