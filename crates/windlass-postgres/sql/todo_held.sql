-- Has jobs looked at that have held tasks, after a worker came: those without a limit, whose windows grew, and all of them if it is
-- the only one. Index: task_job, worker_live.
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE j.state = 0
  AND (j.concurrency IS NULL OR (SELECT count(*) FROM windlass.worker AS w WHERE w.ended_at IS NULL) < 2)
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND NOT t.parked OFFSET 0)
