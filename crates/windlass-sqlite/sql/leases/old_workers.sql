-- Registrations that ended long ago. Index: worker_ended, in order.
SELECT id FROM worker
WHERE ended_at IS NOT NULL AND ended_at <= ?1
ORDER BY ended_at
LIMIT ?2
