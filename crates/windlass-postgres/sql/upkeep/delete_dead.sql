-- Removes tasks that have been dead for long enough, and starts the time of their keys. Never a task that blocks its
-- workflow. $1 died before, $2 how many at most, $3 how long a key is remembered. Index: task_dead, in order.
WITH old AS MATERIALIZED (
  SELECT t.id FROM windlass.task AS t
  WHERE t.state = 6 AND t.ended_at <= $1
    AND {blocks_nothing: task = t}
  ORDER BY t.ended_at, t.id
  LIMIT $2
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM windlass.task AS t USING old
  WHERE t.id = ANY (ARRAY[old.id]) AND t.state + 0 = 6
  RETURNING t.id, t.lane, t.key, t.ended_at
), {remember_keys: start = g.ended_at, ttl = $3}
SELECT id FROM gone
