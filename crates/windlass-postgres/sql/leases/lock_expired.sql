-- Locks the row of a worker that is still expired against claims that are under way. A row that another sweep has
-- locked is left to that sweep. Index: primary key. $1 worker.
SELECT w.ended_at IS NOT NULL, w.crowd
FROM windlass.worker AS w
WHERE w.id = $1 AND (w.ended_at IS NOT NULL OR w.expires_at + 1000 <= windlass.now_ms())
FOR UPDATE SKIP LOCKED
