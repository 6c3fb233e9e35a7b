-- Forgets the tasks that callers waited for long ago. $1 now, $2 how many at most.
DELETE FROM windlass.awaited AS a
WHERE a.task = ANY (ARRAY(SELECT o.task FROM windlass.awaited AS o WHERE o.until <= $1 ORDER BY o.task LIMIT $2))
RETURNING a.task
