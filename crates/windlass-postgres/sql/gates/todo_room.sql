-- Has jobs looked at that have room and held tasks, whatever became of those who should have passed it on. Index: task_job.
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE j.state = 0
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND NOT t.parked AND NOT t.aside OFFSET 0)
  AND CASE WHEN j.concurrency IS NULL
    -- It has a window instead of a limit, which need not be full at every moment.
    THEN NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 1 OFFSET 0)
    ELSE (SELECT count(*) FROM windlass.task AS t WHERE t.job = j.name AND t.state = 1)
      + (SELECT count(*) FROM windlass.task AS t WHERE t.job = j.name AND t.state = 2) < j.concurrency
  END
