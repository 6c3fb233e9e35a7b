-- Kept tasks between two ids, newest first; the caller bounds the range. Parameters as in list_task.sql, and $9 when
-- the lower id was drawn. Index: history_id of every part that can hold them, in order.
SELECT
  h.id, h.state, h.lane, l.queue, l.kind, h.priority, h.encoding, h.payload, h.job, h.workflow, h.key, h.lease, h.attempt,
  h.max_attempts, 0, h.timeout_ms, NULL::bigint, h.started_at, h.ended_at, h.worker, h.progress, h.output_encoding,
  h.output, h.error, NULL::text, h.log::text, h.ran
FROM windlass.history AS h JOIN windlass.lane AS l ON l.id = h.lane
WHERE h.id < $1 AND h.id >= $2 AND h.ended_at >= $9 AND ($3::smallint IS NULL OR h.state = $3)
  AND ($4::text IS NULL OR l.queue = $4) AND ($5::text IS NULL OR l.kind = $5)
  AND ($6::text IS NULL OR h.job = $6) AND ($7::text IS NULL OR h.workflow = $7)
ORDER BY h.id DESC
LIMIT $8
