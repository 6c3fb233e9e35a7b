-- Registrations that have ended, the newest first. Index: primary key, in order.
SELECT id, host, pid, version, kinds, queues, slots, registered_at, renewed_at, memory_usage, factor, reason, counts
FROM worker
WHERE ended_at IS NOT NULL AND ended_at > ?1
ORDER BY id DESC
LIMIT ?2
