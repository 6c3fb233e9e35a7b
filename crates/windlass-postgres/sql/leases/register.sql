-- Adds a worker; its lease starts now. $1 host, $2 process, $3 version, $4 kinds, $5 queues, $6 slots, $7 lease time,
-- $8 the user that registers it.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
)
INSERT INTO windlass.worker (
  lease_ttl_ms, min_claim_no, registered_at, renewed_at, expires_at, pid, slots, available, in_flight, draining, host,
  version, kinds, queues, owner
)
SELECT $7, 0, clock.now, clock.now, clock.now + $7, $2, $6, $6, 0, false, $1, $3, $4, $5, $8
FROM clock
RETURNING id
