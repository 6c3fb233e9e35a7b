-- The newest runs. $1 how many. Index: primary key, in order.
SELECT r.id, r.version, r.running, r.started_at, r.updated_at, windlass.now_ms(), r.body
FROM windlass.run AS r
ORDER BY r.id DESC
LIMIT $1
