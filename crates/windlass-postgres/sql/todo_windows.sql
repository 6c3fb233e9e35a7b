-- Has jobs without a limit looked at that have held tasks: the fleet's slots changed, and with them their windows. Index: task_job.
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE j.concurrency IS NULL AND j.state = 0
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND t.parked IS NULL OFFSET 0)
