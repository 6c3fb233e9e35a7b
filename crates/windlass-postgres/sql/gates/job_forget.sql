-- Forgets jobs that were removed and have no task left. Admission looks at tasks that were added meanwhile as those of
-- a new job. $1 locked jobs. Index: primary key, task_job; without OFFSET the server could read all of that index for a
-- join.
WITH gone AS (
  DELETE FROM windlass.job AS j WHERE j.name = ANY ($1) AND j.state = 3 RETURNING j.name
)
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, gone.name
FROM gone
WHERE EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = gone.name AND t.state <> 6 OFFSET 0)
