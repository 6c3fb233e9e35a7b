-- Runs that have not ended, oldest first. Index: run_running, in order.
SELECT r.id, r.version, r.running, r.started_at, r.updated_at, windlass.now_ms(), r.body
FROM windlass.run AS r
WHERE r.running
ORDER BY r.id
