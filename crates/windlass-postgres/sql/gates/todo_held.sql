-- Has jobs looked at that have held tasks, after a worker came: those without a limit, whose windows grew, and all of them if nobody has
-- been there for a while. Then there may have been nobody to give anything to, and of several that come together none knows who is the
-- first. Index: task_job, worker_live.
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
