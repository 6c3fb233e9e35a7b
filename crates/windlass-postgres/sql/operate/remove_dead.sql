-- Removes dead tasks by id, and starts the time of their keys. Never a task that blocks its workflow. $1 ids in order,
-- $2 how long a key is remembered. Index: primary key.
WITH pick AS MATERIALIZED (
  SELECT t.id FROM windlass.task AS t
  WHERE t.id = ANY ($1) AND t.state + 0 = 6
    AND {blocks_nothing: task = t}
  ORDER BY t.id
  FOR UPDATE
), gone AS (
  DELETE FROM windlass.task AS t USING pick
  WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 6
  RETURNING t.id, t.lane, t.key, t.ended_at
), {remember_keys: start = g.ended_at, ttl = $2}
SELECT id FROM gone
