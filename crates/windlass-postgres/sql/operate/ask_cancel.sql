-- Asks running attempts to end; the first reason stays. $1 ids, $2 reason, $3 channel. Index: primary key.
WITH found AS MATERIALIZED (
  SELECT t.id, t.cancel IS NULL AS is_new
  FROM unnest($1::bigint[]) AS u (id) JOIN windlass.task AS t ON t.id = ANY (ARRAY[u.id])
  WHERE t.state + 0 = 2
  ORDER BY u.id
  FOR NO KEY UPDATE OF t
), asked AS (
  UPDATE windlass.task AS t
  SET cancel = coalesce(t.cancel, $2)
  FROM found
  WHERE t.id = ANY (ARRAY[found.id]) AND t.state + 0 = 2
  RETURNING t.id, t.lease, found.is_new
)
SELECT
  asked.id,
  CASE WHEN asked.is_new THEN pg_notify($3, 'cancel ' || asked.id || ' ' || asked.lease || ' ' || left($2, 1000)) END::text
FROM asked
