-- Locks jobs, in the order of their names. Decisions about them are read in a later statement: the snapshot of this one
-- is older than its locks. $1 names. Index: primary key.
SELECT j.name, j.state, j.concurrency, j.delay_ms, j.last_start, j.recount, j.at_limit, j.gone_before
FROM windlass.job AS j
WHERE j.name = ANY ($1)
ORDER BY j.name
FOR NO KEY UPDATE
