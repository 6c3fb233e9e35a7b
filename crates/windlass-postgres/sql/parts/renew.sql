-- Prolongs the leases of workers that are in force, and the doorbell of their process if that is armed. The offer of a
-- worker that drains is withdrawn. Locked in order, so that two servers never wait for each other; :skip says what
-- happens to rows that another session has locked. The commit does not wait for the disk: after a crash of the server
-- the next renewal repairs a lost one. Index: primary keys of worker, doorbell and lease_epoch, task_cancel, worker_live.
-- $1 workers, each once, $2 available, $3 in flight, $4 draining, $5 listener, $6 how long its doorbell stays armed, $7
-- memory in use, $8 share of their slots that they may use, $9 why not all, $10 what they have done.
--
-- Answers: whether the doorbell is armed; whether a lease of any other worker runs out within the next 2.5 s; which
-- workers were renewed and with how many slots; which are in force and locked by another transaction; the cancels of
-- all: worker, task, lease, reason; which offer is out; the epoch of leases if the server knows it.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, set_config('synchronous_commit', 'off', true)
), free AS MATERIALIZED (
  SELECT w.id, u.available, u.in_flight, u.draining, u.memory_usage, u.factor, u.reason, u.counts
  FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::boolean[], $7::float8[], $8::float8[], $9::text[], $10::text[])
    AS u (id, available, in_flight, draining, memory_usage, factor, reason, counts)
  JOIN windlass.worker AS w ON w.id = ANY (ARRAY[u.id])
  CROSS JOIN clock
  WHERE w.ended_at IS NULL AND w.expires_at > clock.now
  ORDER BY w.id
  FOR NO KEY UPDATE OF w :skip
), renewed AS (
  UPDATE windlass.worker AS w
  SET renewed_at = clock.now, expires_at = clock.now + w.lease_ttl_ms, available = f.available, in_flight = f.in_flight,
    draining = f.draining, memory_usage = f.memory_usage, factor = f.factor, reason = f.reason,
    counts = f.counts
  FROM free AS f CROSS JOIN clock
  WHERE w.id = ANY (ARRAY[f.id])
  RETURNING w.id, w.slots
), armed AS (
  UPDATE windlass.doorbell AS d
  SET armed_until = clock.now + $6,
    worker = CASE
      WHEN d.worker <> ALL (ARRAY(SELECT u.id FROM unnest($1::bigint[], $4::boolean[]) AS u (id, draining) WHERE u.draining))
        THEN d.worker
    END
  FROM clock
  WHERE d.listener = $5 AND d.armed_until > clock.now
  RETURNING CASE WHEN d.worker IS NOT NULL THEN d.claim_no END AS claim_no
), asked AS MATERIALIZED (
  SELECT t.worker, t.id, t.lease, t.cancel
  FROM windlass.task AS t
  WHERE t.state = 2 AND t.cancel IS NOT NULL AND t.worker = ANY ($1)
)
SELECT
  EXISTS (SELECT 1 FROM armed),
  EXISTS (
    SELECT 1 FROM windlass.worker AS w
    WHERE w.ended_at IS NULL AND w.expires_at + 1000 <= (SELECT c.now FROM clock AS c) + 2500
      AND w.id <> ALL (ARRAY(SELECT r.id FROM renewed AS r))
  ),
  ARRAY(SELECT r.id FROM renewed AS r ORDER BY r.id),
  ARRAY(SELECT r.slots FROM renewed AS r ORDER BY r.id),
  ARRAY(
    SELECT w.id FROM windlass.worker AS w
    WHERE (SELECT count(*) FROM renewed) < cardinality($1) AND w.id = ANY ($1) AND w.ended_at IS NULL
      AND w.expires_at > (SELECT c.now FROM clock AS c) AND w.id <> ALL (ARRAY(SELECT r.id FROM renewed AS r))
  ),
  ARRAY(SELECT a.worker FROM asked AS a ORDER BY a.id),
  ARRAY(SELECT a.id FROM asked AS a ORDER BY a.id),
  ARRAY(SELECT a.lease FROM asked AS a ORDER BY a.id),
  ARRAY(SELECT a.cancel FROM asked AS a ORDER BY a.id),
  (SELECT a.claim_no FROM armed AS a),
  (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1)
FROM clock
