-- The row of a worker that is still expired, held against claims that are under way. One that another sweep holds is left to
-- it. Index: primary key. $1 worker.
SELECT w.ended_at IS NOT NULL, w.crowd
FROM windlass.worker AS w
WHERE w.id = $1 AND (w.ended_at IS NOT NULL OR w.expires_at + 1000 <= windlass.now_ms())
FOR UPDATE SKIP LOCKED
