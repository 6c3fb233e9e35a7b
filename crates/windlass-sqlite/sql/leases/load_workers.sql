-- Workers that had not ended when the store was last closed.
SELECT
  id, remote, host, pid, version, kinds, queues, slots, lease_ttl_ms, min_claim_no, registered_at, renewed_at
FROM worker
WHERE ended_at IS NULL
