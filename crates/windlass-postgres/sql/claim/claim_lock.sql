-- Locks the rows of workers that may claim against other claims of theirs that look for suspects; answers what they
-- hold. In order, so that two such claims never wait for each other. Indexes: primary keys of worker and lease_epoch.
-- $1 workers, $2 claim numbers.
SELECT w.id
FROM unnest($1::bigint[], $2::bigint[]) AS d (worker, claim_no)
JOIN windlass.worker AS w ON w.id = d.worker
WHERE {live_worker: claim_no = d.claim_no}
ORDER BY w.id
FOR NO KEY UPDATE OF w
