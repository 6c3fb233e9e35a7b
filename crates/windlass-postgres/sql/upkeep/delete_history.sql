-- Removes kept tasks one by one, the lowest ids first: those that ended before a time, or as many as exceed a limit.
-- Never a task that blocks its workflow. $1 ended before, $2 how many at most. Index: history_id, in order.
WITH old AS MATERIALIZED (
  SELECT h.id, h.ended_at FROM windlass.history AS h
  WHERE h.ended_at <= $1
    AND {blocks_nothing: task = h}
  ORDER BY h.id
  LIMIT $2
)
DELETE FROM windlass.history AS h USING old WHERE h.id = ANY (ARRAY[old.id]) AND h.ended_at = old.ended_at
RETURNING h.id
