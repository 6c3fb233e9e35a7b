-- One ended task for display. Index: primary keys of history and lane.
SELECT
  history.id, history.state, history.lane, lane.queue, lane.kind, history.priority, history.encoding, history.payload,
  history.job, history.workflow, history.key, history.lease, history.attempt, history.max_attempts, 0, history.timeout_ms,
  NULL, history.started_at, history.ended_at, history.worker, history.progress, history.output_encoding,
  history.output, history.error, NULL, history.log, history.ran
FROM history JOIN lane ON lane.id = history.lane
WHERE history.id = ?1
