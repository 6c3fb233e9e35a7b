-- Tasks as operators see them, from both tables: unfinished or kept. No task ends before it is enqueued, so only the
-- parts of the history that can hold them are read. $1 ids, $2 when the first of them was enqueued, $3 whether
-- payload, output and log are read. Index: primary keys, history_id.
SELECT
  t.id, t.state, t.lane, l.queue, l.kind, t.priority, t.encoding,
  CASE WHEN $3 THEN t.payload END, t.job, t.workflow, t.key, t.lease, t.attempt,
  t.max_attempts, t.crashes, t.timeout_ms, t.due_at, t.claimed_at, t.ended_at, t.worker, t.progress, NULL::smallint,
  NULL::bytea, t.error, t.cancel, CASE WHEN $3 THEN t.log::text END, false
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.id = ANY ($1)
UNION ALL
SELECT
  h.id, h.state, h.lane, l.queue, l.kind, h.priority, h.encoding,
  CASE WHEN $3 THEN h.payload END, h.job, h.workflow, h.key, h.lease, h.attempt,
  h.max_attempts, 0, h.timeout_ms, NULL::bigint, h.started_at, h.ended_at, h.worker, h.progress, h.output_encoding,
  CASE WHEN $3 THEN h.output END, h.error, NULL::text, CASE WHEN $3 THEN h.log::text END, h.ran
FROM windlass.history AS h JOIN windlass.lane AS l ON l.id = h.lane
WHERE h.id = ANY ($1) AND h.ended_at >= $2
