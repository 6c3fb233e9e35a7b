-- Forgets keys whose time has passed; a key whose task is still kept is looked at again later. $1 now, $2 how many at
-- most, $3 how much later. Index: key_expires, in order; for each its task by the primary key and history_id: with
-- OFFSET the server cannot read all ids at once instead.
WITH old AS MATERIALIZED (
  SELECT k.queue, k.key,
    EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.id = k.task OFFSET 0)
    OR EXISTS (SELECT 1 FROM windlass.history AS h WHERE h.id = k.task OFFSET 0) AS is_kept
  FROM windlass.key AS k
  WHERE k.expires_at <= $1
  ORDER BY k.expires_at
  LIMIT $2
  FOR UPDATE SKIP LOCKED
), prolonged AS (
  UPDATE windlass.key AS k SET expires_at = $1 + $3
  FROM old WHERE old.is_kept AND k.queue = ANY (ARRAY[old.queue]) AND k.key = ANY (ARRAY[old.key])
), gone AS (
  DELETE FROM windlass.key AS k USING old
  WHERE NOT old.is_kept AND k.queue = ANY (ARRAY[old.queue]) AND k.key = ANY (ARRAY[old.key])
)
SELECT count(*) FROM old
