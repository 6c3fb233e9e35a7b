-- Broken: if two workers register at once, admission looks at all jobs for neither. Breaks NO-STRANDED. Noticed by own::each_of_two_new_workers_has_all_jobs_looked_at
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE j.state = 0
  AND (
    j.concurrency IS NULL OR NOT EXISTS (
      SELECT 1
      FROM windlass.worker AS w
      WHERE w.ended_at IS NULL HAVING count(*) > 1
    )
  )
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND NOT t.parked AND NOT t.aside OFFSET 0)
