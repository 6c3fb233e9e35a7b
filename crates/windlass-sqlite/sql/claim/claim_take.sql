-- Leases a range of a lane's ready line that this transaction has just read. Index: task_ready.
UPDATE task
SET state = 2, lease = max(lease + 1, ?8), attempt = attempt + 1, worker = ?1, claim_no = ?2, claimed_at = ?3
WHERE lane = ?4 AND priority = ?5 AND ready_seq BETWEEN ?6 AND ?7 AND state = 1 AND crashes < 2
