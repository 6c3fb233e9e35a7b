-- Removes kept tasks that fit no part of the history. Never a task that blocks its workflow. $1 ended before, $2 how
-- many at most. Index: history_id, in order.
WITH old AS MATERIALIZED (
  SELECT h.id FROM windlass.history_rest AS h
  WHERE h.ended_at <= $1
    AND (
      h.workflow IS NULL
      OR NOT EXISTS (SELECT 1 FROM windlass.workflow AS w WHERE w.name = h.workflow AND w.blocked_by = h.id)
    )
  ORDER BY h.id
  LIMIT $2
)
DELETE FROM windlass.history_rest AS h USING old WHERE h.id = ANY (ARRAY[old.id]) AND h.ended_at <= $1
RETURNING h.id
