-- Makes lanes that do not exist yet. In sorted order, so that two callers do not wait for each other. $1 queues, $2
-- kinds.
INSERT INTO windlass.lane (queue, kind)
SELECT DISTINCT u.queue, u.kind
FROM unnest($1::text[], $2::text[]) AS u (queue, kind)
WHERE NOT EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.queue = u.queue AND l.kind = u.kind)
ORDER BY u.queue, u.kind
ON CONFLICT (queue, kind) DO NOTHING
RETURNING id
