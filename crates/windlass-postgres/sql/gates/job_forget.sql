-- Forgets jobs that were removed and have nothing left; tasks that came meanwhile are looked at as those of a new job.
-- $1 jobs that are held. Index: primary key, task_job; without OFFSET it could become a join that reads all of it.
WITH gone AS (
  DELETE FROM windlass.job AS j WHERE j.name = ANY ($1) AND j.state = 3 RETURNING j.name
)
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, gone.name
FROM gone
WHERE EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = gone.name AND t.state <> 6 OFFSET 0)
