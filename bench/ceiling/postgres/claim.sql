-- $1 how many, $2 the place after which it is read.
WITH c AS MATERIALIZED (
  SELECT ctid FROM windlass.task
  WHERE state = 1 AND crashes = 0 AND lane = 1 AND priority = 0 AND ready_seq > $2
  ORDER BY priority DESC, ready_seq
  LIMIT $1
  FOR UPDATE SKIP LOCKED
)
UPDATE windlass.task
SET state = 2, lease = lease + 1, attempt = attempt + 1, worker = 7, claim_no = 1, claimed_at = 1800000000000
WHERE ctid = ANY (ARRAY(SELECT ctid FROM c)) AND state = 1
RETURNING id, lease, ready_seq, payload
