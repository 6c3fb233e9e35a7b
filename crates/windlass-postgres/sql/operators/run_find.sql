-- One run. $1 id. Index: primary key.
SELECT r.id, r.version, r.running, r.started_at, r.updated_at, windlass.now_ms(), r.body
FROM windlass.run AS r
WHERE r.id = $1
