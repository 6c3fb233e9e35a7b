-- Stores the progress of an attempt. Only the primary key can serve the fence. $1 task, $2 lease, $3 worker, $4 text.
UPDATE windlass.task AS t
SET progress = $4
WHERE t.id = $1 AND t.lease = $2 AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $3
RETURNING t.id
