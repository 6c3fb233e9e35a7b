-- Leases of a worker under a range of claim numbers, oldest task first, so that they return to the line in the order in
-- which they were added. $1 worker, $2 and $3 lowest and highest claim number, $4 how many at most. Index:
-- task_running, by worker and claim number; the sum keeps the server from reading all tasks in the order of the primary
-- key.
SELECT t.id, t.lease, t.workflow, t.claim_no, t.crashes, coalesce(t.suspect, 0)
FROM windlass.task AS t
WHERE t.state = 2 AND t.worker = $1 AND t.claim_no BETWEEN $2 AND $3
ORDER BY t.id + 0
LIMIT $4
