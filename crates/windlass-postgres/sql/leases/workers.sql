-- Workers that are registered or ended in the last day, newest first. $1 how many at most. Index: worker_live,
-- worker_ended.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
)
SELECT
  w.id, w.host, w.pid, w.version, w.kinds, w.queues, w.slots, w.in_flight, w.available, w.draining,
  w.ended_at IS NULL AND w.expires_at > clock.now, w.registered_at, w.renewed_at, w.memory_usage,
  w.factor, w.reason, w.ended_at IS NOT NULL, w.counts
FROM windlass.worker AS w CROSS JOIN clock
WHERE w.ended_at IS NULL OR w.ended_at > clock.now - 86400000
ORDER BY w.ended_at IS NOT NULL, w.id DESC
LIMIT $1
