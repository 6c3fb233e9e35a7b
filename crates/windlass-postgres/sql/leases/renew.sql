-- Prolongs a worker's lease if it is still in force, and its doorbell if that is armed. The offer of a worker that
-- drains is withdrawn. Answers whether another lease runs out within the next 2.5 s, at the end which offer is out, and
-- the epoch of leases if the server knows it. The commit does not wait for the disk: after a crash of the server the
-- next renewal repairs a lost one. Index: primary keys of worker, doorbell and lease_epoch, task_cancel; the sums keep
-- the server from reading all tasks in the order of the primary key. $1 worker, $2 available, $3 in flight, $4
-- draining, $5 listener, $6 how long its doorbell stays armed, $7 memory in use, $8 share of its slots that it may use,
-- $9 why not all, $10 what it has done.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, set_config('synchronous_commit', 'off', true)
), renewed AS (
  UPDATE windlass.worker AS w
  SET renewed_at = clock.now, expires_at = clock.now + w.lease_ttl_ms, available = $2, in_flight = $3, draining = $4,
    memory_usage = $7, factor = $8, reason = $9, counts = $10
  FROM clock
  WHERE w.id = $1 AND w.ended_at IS NULL AND w.expires_at > clock.now
  RETURNING w.id, w.slots
), armed AS (
  UPDATE windlass.doorbell AS d
  SET armed_until = clock.now + $6, worker = CASE WHEN NOT ($4 AND d.worker = $1) THEN d.worker END
  FROM clock
  WHERE d.listener = $5 AND d.armed_until > clock.now
  RETURNING CASE WHEN d.worker IS NOT NULL THEN d.claim_no END AS claim_no
)
SELECT
  EXISTS (SELECT 1 FROM renewed),
  EXISTS (SELECT 1 FROM armed),
  EXISTS (
    SELECT 1 FROM windlass.worker AS w, clock WHERE w.ended_at IS NULL AND w.expires_at + 1000 <= clock.now + 2500 AND w.id <> $1
  ),
  ARRAY(SELECT t.id FROM windlass.task AS t WHERE t.state = 2 AND t.cancel IS NOT NULL AND t.worker = $1 ORDER BY t.id + 0),
  ARRAY(SELECT t.lease FROM windlass.task AS t WHERE t.state = 2 AND t.cancel IS NOT NULL AND t.worker = $1 ORDER BY t.id + 0),
  ARRAY(SELECT t.cancel FROM windlass.task AS t WHERE t.state = 2 AND t.cancel IS NOT NULL AND t.worker = $1 ORDER BY t.id + 0),
  (SELECT r.slots FROM renewed AS r),
  (SELECT a.claim_no FROM armed AS a),
  (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1)
FROM clock
