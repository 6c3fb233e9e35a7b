UPDATE task
SET state = 2, lease = lease + 1, attempt = attempt + 1, worker = 7, claim_no = ?1, claimed_at = ?2
WHERE lane = 1 AND priority = 0 AND ready_seq BETWEEN ?3 AND ?4 AND state = 1 AND crashes = 0
