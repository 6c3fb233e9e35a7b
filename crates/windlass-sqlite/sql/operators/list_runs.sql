-- The newest runs. Index: primary key, in order.
SELECT r.id, r.version, r.running, r.started_at, r.updated_at, r.body
FROM run AS r
ORDER BY r.id DESC
LIMIT ?1
