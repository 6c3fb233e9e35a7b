-- Broken: lanes with tasks are retired. Breaks NO-STRANDED. Noticed by lanes::a_lane_with_any_task_is_not_retired
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), seen AS MATERIALIZED (
  SELECT l.id, l.idle_since, l.id IN (SELECT u.id FROM unnest($1::integer[]) AS u (id)) AND false AS is_used
  FROM windlass.lane AS l
  WHERE NOT l.retired
), old AS MATERIALIZED (
  SELECT s.id FROM seen AS s
  WHERE NOT s.is_used AND s.idle_since <= (SELECT now FROM clock) - $2
  ORDER BY s.idle_since, s.id
  LIMIT $3
), changed AS MATERIALIZED (
  SELECT o.id, false AS is_used, true AS is_old FROM old AS o
  UNION ALL
  SELECT s.id, s.is_used, false FROM seen AS s WHERE s.is_used = (s.idle_since IS NOT NULL)
  ORDER BY 1
)
UPDATE windlass.lane AS l
SET
  idle_since = CASE WHEN NOT c.is_used THEN coalesce(l.idle_since, (SELECT now FROM clock)) END,
  retired = c.is_old AND l.idle_since IS NOT NULL
FROM changed AS c
WHERE l.id = c.id
RETURNING l.retired
