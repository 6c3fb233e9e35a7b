-- The worker's row, held against other claims of the same worker that look for suspects, and what the worker holds.
-- Index: primary key of worker. $1 worker, $2 claim number.
SELECT w.id
FROM windlass.worker AS w
WHERE w.id = $1 AND w.ended_at IS NULL AND w.min_claim_no <= $2 AND w.expires_at > windlass.now_ms()
FOR NO KEY UPDATE
