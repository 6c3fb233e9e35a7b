-- Leases one task. Index: primary key.
UPDATE task
SET state = 2, lease = max(lease + 1, ?5), attempt = attempt + 1, worker = ?1, claim_no = ?2, claimed_at = ?3
WHERE id = ?4 AND state = 1
