-- Has admission look at jobs with held tasks, after a worker has registered. At jobs without a limit, whose windows
-- grew. At all of them if there was no worker for a while: then admission may have had no worker to give room to, and
-- of several workers that register at once none knows which is the first. Index: task_job, worker_live.
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE j.state = 0
  AND (
    j.concurrency IS NULL OR NOT EXISTS (
      SELECT 1
      FROM windlass.worker AS w
      WHERE w.ended_at IS NULL AND w.registered_at < (SELECT windlass.now_ms()) - 2000 AND w.expires_at > (SELECT windlass.now_ms())
    )
  )
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND NOT t.parked AND NOT t.aside OFFSET 0)
