-- Broken: a worker takes suspects of any group. Breaks POISON-CONTAINED. Noticed by suspects::a_worker_runs_one_group_of_suspects_at_a_time
WITH line AS MATERIALIZED (
  SELECT array_agg(t.place) AS places, array_agg(t.job) FILTER (WHERE t.paced) AS started
  FROM (
    SELECT t.ctid AS place, t.job, t.paced
    FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
    WHERE t.state = 1 AND t.crashes >= 2 AND t.lane = ANY ($3) AND coalesce($4, '{}') IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue)
    ORDER BY t.priority DESC, t.ready_seq
    LIMIT $5
    FOR UPDATE OF t SKIP LOCKED
  ) AS t
), started AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 2::smallint, unnest(line.started) FROM line
)
UPDATE windlass.task
SET state = 2, lease = {new_lease},
  attempt = attempt + 1, worker = $1, claim_no = $2, claimed_at = (SELECT windlass.now_ms())
WHERE ctid = ANY ((SELECT places FROM line)::tid[]) AND state = 1
RETURNING {claimed_task}
