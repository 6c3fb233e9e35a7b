-- What cancel and redrive need to know of a task. Index: primary key.
SELECT
  state, lane, lease, worker, crashes, attempt, key IS NOT NULL AS keyed, log, length(payload), cancel,
  job, workflow, step, on_failure, priority, aside
FROM task
WHERE id = ?1
