-- Tasks between two ids, newest first; the caller bounds the range. Index: primary keys, in order.
-- ?12 says whether payload, output and log are read.
SELECT
  history.id, history.state, history.lane, lane.queue, lane.kind, history.priority, history.encoding,
  CASE WHEN ?12 THEN history.payload END,
  history.job, history.workflow, history.key, history.lease, history.attempt, history.max_attempts, 0, history.timeout_ms,
  NULL, history.started_at, history.ended_at, history.worker, history.progress, history.output_encoding,
  CASE WHEN ?12 THEN history.output END, history.error, NULL, CASE WHEN ?12 THEN history.log END, history.ran
FROM history CROSS JOIN lane ON lane.id = history.lane
WHERE history.id < ?1 AND history.id >= ?2
  AND (?3 IS NULL OR history.state = ?3)
  AND (?4 IS NULL OR lane.queue = ?4)
  AND (?5 IS NULL OR lane.kind = ?5)
  AND (?6 IS NULL OR history.job = ?6)
  AND (?7 IS NULL OR history.workflow = ?7)
  AND (?9 IS NULL OR history.worker = ?9)
  AND (?10 IS NULL OR history.key = ?10)
  AND (?11 IS NULL OR substr(history.error, 1, length(?11)) = ?11)
ORDER BY history.id DESC
LIMIT ?8
