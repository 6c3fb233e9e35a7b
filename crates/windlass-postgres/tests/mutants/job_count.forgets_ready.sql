-- Broken: ready tasks are not counted. Breaks LIMIT. Noticed by jobs::a_lower_limit_takes_back_ready_tasks_but_no_running_ones
WITH freed AS MATERIALIZED (
  SELECT u.job, sum(u.n)::bigint AS n
  FROM windlass.freed AS f CROSS JOIN LATERAL unnest(f.jobs, f.places) AS u (job, n)
  WHERE u.job = ANY ($1)
  GROUP BY u.job
)
SELECT
  u.name,
  0::bigint,
  (SELECT count(*) FROM windlass.task AS t WHERE t.job = u.name AND t.state = 2),
  CASE WHEN u.has_delay THEN EXISTS (
    SELECT 1 FROM windlass.gate_todo AS g WHERE g.key = u.name AND g.kind = 2
  ) ELSE false END,
  CASE WHEN u.gone_before IS NOT NULL THEN EXISTS (
    SELECT 1 FROM windlass.task AS t WHERE t.job = u.name AND t.state <> 6 AND t.id <= u.gone_before
  ) ELSE false END,
  (SELECT coalesce(sum(w.slots), 0) FROM windlass.worker AS w WHERE w.ended_at IS NULL),
  windlass.now_ms(),
  coalesce((SELECT f.n FROM freed AS f WHERE f.job = u.name), 0)
FROM unnest($1::text[], $2::boolean[], $3::bigint[]) AS u (name, has_delay, gone_before)
