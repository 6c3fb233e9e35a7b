-- The rows of workers that may claim, while the server knows the epoch of leases, held against other claims of theirs that look for suspects, and what they hold; in order,
-- so that two such claims never wait for each other. Index: primary keys of worker and lease_epoch. $1 workers, $2 claim numbers.
SELECT w.id
FROM unnest($1::bigint[], $2::bigint[]) AS d (worker, claim_no)
JOIN windlass.worker AS w ON w.id = d.worker
WHERE w.ended_at IS NULL AND w.min_claim_no <= d.claim_no AND w.expires_at > windlass.now_ms()
  AND EXISTS (SELECT 1 FROM windlass.lease_epoch AS e WHERE e.id = 1)
ORDER BY w.id
FOR NO KEY UPDATE OF w
