-- Removes dead tasks by id, and starts the time of their keys. Never a task that blocks its workflow. $1 ids in order,
-- $2 how long a key is remembered. Index: primary key.
WITH pick AS MATERIALIZED (
  SELECT t.id FROM windlass.task AS t
  WHERE t.id = ANY ($1) AND t.state + 0 = 6
    AND (
      t.workflow IS NULL
      OR NOT EXISTS (SELECT 1 FROM windlass.workflow AS w WHERE w.name = t.workflow AND w.blocked_by = t.id)
    )
  ORDER BY t.id
  FOR UPDATE
), gone AS (
  DELETE FROM windlass.task AS t USING pick
  WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 6
  RETURNING t.id, t.lane, t.key, t.ended_at
), remembered AS (
  UPDATE windlass.key AS k
  SET expires_at = g.ended_at + $2
  FROM gone AS g JOIN windlass.lane AS l ON l.id = g.lane
  WHERE g.key IS NOT NULL AND k.queue = ANY (ARRAY[l.queue]) AND k.key = ANY (ARRAY[g.key]) AND k.task = g.id
)
SELECT id FROM gone
