-- Registers a worker. Index: primary key.
INSERT INTO worker (
  host, pid, version, kinds, queues, slots, lease_ttl_ms, min_claim_no, registered_at, renewed_at, remote, owner
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?8, ?9, ?10)
