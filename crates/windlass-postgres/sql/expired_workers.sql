-- Workers whose leases ran out more than a second ago, and tombstones that still hold something; none while the server is up
-- for less than the lease itself, because nobody could renew before. With the lease times of the former. $1 whether tombstones are looked at. Index:
-- worker_live, worker_ended, task_running.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, windlass.server_started_ms() AS started
)
SELECT w.id, w.lease_ttl_ms
FROM windlass.worker AS w CROSS JOIN clock
WHERE w.ended_at IS NULL AND w.expires_at + 1000 <= clock.now AND clock.started + w.lease_ttl_ms <= clock.now
UNION ALL
SELECT w.id, 0::bigint
FROM windlass.worker AS w
WHERE $1 AND w.ended_at IS NOT NULL
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = w.id)
ORDER BY 1
