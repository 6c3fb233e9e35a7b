-- Removes workers that ended long ago and hold no lease, with their receipts. $1 ended before, $2 how many at most.
-- Index: worker_ended, in order.
WITH old AS MATERIALIZED (
  SELECT w.id FROM windlass.worker AS w
  WHERE w.ended_at <= $1 AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = w.id)
  ORDER BY w.ended_at
  LIMIT $2
  FOR UPDATE SKIP LOCKED
), receipts AS (
  DELETE FROM windlass.receipt AS r USING old WHERE r.worker = old.id
), fenced AS (
  DELETE FROM windlass.fenced AS f USING old WHERE f.worker = old.id
)
DELETE FROM windlass.worker AS w USING old WHERE w.id = old.id
RETURNING w.id
