-- Removes kept tasks that fit no part of the history. Never a task that blocks its workflow. $1 ended before, $2 how
-- many at most. Index: history_id, in order.
WITH old AS MATERIALIZED (
  SELECT h.id FROM windlass.history_rest AS h
  WHERE h.ended_at <= $1
    AND {blocks_nothing: task = h}
  ORDER BY h.id
  LIMIT $2
)
DELETE FROM windlass.history_rest AS h USING old WHERE h.id = ANY (ARRAY[old.id]) AND h.ended_at <= $1
RETURNING h.id
