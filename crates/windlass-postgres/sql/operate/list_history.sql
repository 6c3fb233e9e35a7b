-- Kept tasks between two ids, newest first; the caller bounds the range. Parameters as in list_task.sql, and $13 when
-- the lower id was drawn. Index: history_id of every part that can hold them, in order.
SELECT
  h.id, h.state, h.lane, l.queue, l.kind, h.priority, h.encoding,
  CASE WHEN $12 THEN h.payload END, h.job, h.workflow, h.key, h.lease, h.attempt,
  h.max_attempts, 0, h.timeout_ms, NULL::bigint, h.started_at, h.ended_at, h.worker, h.progress, h.output_encoding,
  CASE WHEN $12 THEN h.output END, h.error, NULL::text, CASE WHEN $12 THEN h.log::text END, h.ran
FROM windlass.history AS h JOIN windlass.lane AS l ON l.id = h.lane
WHERE h.id < $1 AND h.id >= $2 AND h.ended_at >= $13 AND ($3::smallint IS NULL OR h.state = $3)
  AND ($4::text IS NULL OR l.queue = $4) AND ($5::text IS NULL OR l.kind = $5)
  AND ($6::text IS NULL OR h.job = $6) AND ($7::text IS NULL OR h.workflow = $7)
  AND ($9::bigint IS NULL OR h.worker = $9) AND ($10::text IS NULL OR h.key = $10)
  AND ($11::text IS NULL OR starts_with(h.error, $11))
ORDER BY h.id DESC
LIMIT $8
