-- Locks the rows of the workers that may claim, and answers which those are. The lock keeps away other claims of these
-- workers that run in a transaction. It is taken in the order of ids, so that two such claims never deadlock. Indexes: primary keys of worker and lease_epoch.
-- $1 workers, $2 claim numbers.
SELECT w.id
FROM unnest($1::bigint[], $2::bigint[]) AS d (worker, claim_no)
JOIN windlass.worker AS w ON w.id = d.worker
WHERE {live_worker: claim_no = d.claim_no}
ORDER BY w.id
FOR NO KEY UPDATE OF w
