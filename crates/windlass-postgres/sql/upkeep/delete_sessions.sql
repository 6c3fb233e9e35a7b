-- Removes sessions that have ended. $1 ended before, $2 how many at most. Index: session_expires, in order.
WITH old AS MATERIALIZED (
  SELECT s.id FROM windlass.session AS s
  WHERE s.expires_at <= $1
  ORDER BY s.expires_at
  LIMIT $2
  FOR UPDATE SKIP LOCKED
)
DELETE FROM windlass.session AS s USING old WHERE s.id = old.id
RETURNING s.id
