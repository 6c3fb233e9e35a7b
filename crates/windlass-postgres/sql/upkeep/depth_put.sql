-- Writes figures, and deletes those of lanes and states that have none any more. $1 lanes, $2 states, $3 numbers.
WITH counted AS (
  INSERT INTO windlass.depth AS d (lane, state, n, counted_at)
  SELECT u.lane, u.state, u.n, windlass.now_ms()
  FROM unnest($1::integer[], $2::smallint[], $3::bigint[]) AS u (lane, state, n)
  ORDER BY u.lane, u.state
  ON CONFLICT (lane, state) DO UPDATE SET n = excluded.n, counted_at = excluded.counted_at
  WHERE d.n <> excluded.n
)
DELETE FROM windlass.depth AS d
WHERE NOT EXISTS (
  SELECT 1 FROM unnest($1::integer[], $2::smallint[]) AS u (lane, state) WHERE u.lane = d.lane AND u.state = d.state
)
