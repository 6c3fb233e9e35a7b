-- Unfinished tasks between two ids, newest first; the caller bounds the range. $1 and $2 the range, $3 state, $4 queue,
-- $5 kind, $6 job, $7 workflow, $8 how many at most, $9 worker, $10 key, $11 how their errors begin, $12 whether payload,
-- output and log are read. Index: primary keys, in order.
SELECT {task_record: whole = $12}
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.id < $1 AND t.id >= $2
  AND {listed: task = t}
ORDER BY t.id DESC
LIMIT $8
