-- All dead tasks between two ids, newest first; only if there are few enough to be sorted. $1 and $2 the range, $3 not
-- used, $4 queue, $5 kind, $6 job, $7 workflow, $8 how many at most. Index: task_dead.
SELECT
  t.id, t.state, t.lane, l.queue, l.kind, t.priority, t.encoding, t.payload, t.job, t.workflow, t.key, t.lease, t.attempt,
  t.max_attempts, t.crashes, t.timeout_ms, t.due_at, t.claimed_at, t.ended_at, t.worker, t.progress, NULL::smallint,
  NULL::bytea, t.error, t.cancel, t.log::text, false
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.state = 6 AND t.id < $1 AND t.id >= $2 AND ($3::smallint IS NULL OR t.state = $3)
  AND ($4::text IS NULL OR l.queue = $4) AND ($5::text IS NULL OR l.kind = $5)
  AND ($6::text IS NULL OR t.job = $6) AND ($7::text IS NULL OR t.workflow = $7)
ORDER BY t.id DESC
LIMIT $8
