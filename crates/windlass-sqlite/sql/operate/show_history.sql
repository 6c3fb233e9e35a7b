-- One ended task for display. Index: primary keys of history and lane.
-- ?2 says whether payload, output and log are read.
SELECT
  history.id, history.state, history.lane, lane.queue, lane.kind, history.priority, history.encoding,
  CASE WHEN ?2 THEN history.payload END,
  history.job, history.workflow, history.key, history.lease, history.attempt, history.max_attempts, 0, history.timeout_ms,
  NULL, history.started_at, history.ended_at, history.worker, history.progress, history.output_encoding,
  CASE WHEN ?2 THEN history.output END, history.error, NULL, CASE WHEN ?2 THEN history.log END, history.ran
FROM history JOIN lane ON lane.id = history.lane
WHERE history.id = ?1
