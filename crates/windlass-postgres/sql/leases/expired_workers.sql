-- Workers whose leases ran out more than a second ago, and tombstones that still hold leases. None if the server has
-- been up, or reachable again, for less than the lease itself: no worker could renew before. $1 whether to read
-- tombstones, $2 milliseconds since the server was reached again, if there was an outage. Index: worker_live,
-- worker_ended, task_running.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, windlass.server_started_ms() AS started
)
SELECT w.id
FROM windlass.worker AS w CROSS JOIN clock
WHERE w.ended_at IS NULL AND w.expires_at + 1000 <= clock.now AND clock.started + w.lease_ttl_ms <= clock.now
  AND ($2::bigint IS NULL OR $2 >= w.lease_ttl_ms)
UNION ALL
SELECT w.id
FROM windlass.worker AS w
WHERE $1 AND w.ended_at IS NOT NULL
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = w.id)
ORDER BY 1
