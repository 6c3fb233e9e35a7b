-- Adds a bulk run, unless as many as may be are at work, and removes the oldest ended ones. $1 its text, $2 how many may
-- be at work, $3 how many ended ones stay. Index: run_running, and the primary key of a small table. Callers that start
-- at the same moment may exceed both numbers by a few.
WITH old AS (
  DELETE FROM windlass.run AS r
  USING (
    SELECT o.id FROM windlass.run AS o WHERE NOT o.running
    ORDER BY o.id DESC
    OFFSET $3
  ) AS surplus
  WHERE r.id = surplus.id
)
INSERT INTO windlass.run AS r (version, running, started_at, updated_at, body)
SELECT 1, true, clock.now, clock.now, $1
FROM (SELECT windlass.now_ms() AS now) AS clock
WHERE (SELECT count(*) FROM windlass.run AS o WHERE o.running) < $2
RETURNING r.id, r.version, r.running, r.started_at, r.updated_at, r.started_at, r.body
