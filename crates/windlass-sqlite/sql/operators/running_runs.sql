-- Runs that have not ended, oldest first. Index: run_running, in order.
SELECT r.id, r.version, r.running, r.started_at, r.updated_at, r.body
FROM run AS r
WHERE r.running = 1
ORDER BY r.id
