-- $1 tasks, $2 leases.
WITH gone AS (
  DELETE FROM windlass.task AS t
  USING unnest($1::bigint[], $2::integer[]) AS u (id, lease)
  WHERE t.id = u.id AND t.lease = u.lease AND t.state + 0 = 2
  RETURNING t.id, t.claimed_at, t.lane, t.priority, t.lease, t.attempt, t.max_attempts, t.encoding, t.payload
)
INSERT INTO windlass.history (
  id, started_at, ended_at, worker, lane, priority, lease, attempt, max_attempts, state, encoding, ran, payload
)
SELECT id, claimed_at, $3, 7, lane, priority, lease, attempt, max_attempts, 5, encoding, true, payload FROM gone
