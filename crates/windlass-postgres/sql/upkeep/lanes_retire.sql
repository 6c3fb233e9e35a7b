-- Notes which lanes in use stand empty, and retires those that have done so since the last look, the longest first. $1
-- lanes that do not, $2 how long a lane stands empty, $3 how many at most. A task that enters a lane has taken the note
-- away, or waits for this statement. Index: lane_in_use; the update goes by the primary key.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), seen AS MATERIALIZED (
  -- Not as a join, which would compare each lane with each.
  SELECT l.id, l.idle_since, l.id IN (SELECT u.id FROM unnest($1::integer[]) AS u (id)) AS is_used
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
  -- A task may have entered the lane since this statement began.
  retired = c.is_old AND l.idle_since IS NOT NULL
FROM changed AS c
WHERE l.id = c.id
RETURNING l.retired
