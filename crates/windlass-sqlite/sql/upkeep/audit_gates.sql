-- Jobs and workflows that break a promise, each with the gate whose pending turn would explain it. Scans
-- everything: for operators and tests.
WITH live (lane) AS (
  SELECT lane.id FROM lane
  WHERE lane.queue NOT IN (SELECT queue FROM paused_queue)
    AND EXISTS (
      SELECT 1 FROM worker
      WHERE worker.ended_at IS NULL
        AND lane.kind IN (SELECT value FROM json_each(worker.kinds))
        AND (worker.queues = '[]' OR lane.queue IN (SELECT value FROM json_each(worker.queues)))
    )
),
fleet (window) AS (SELECT max(2 * coalesce(sum(slots), 0), 100) FROM worker WHERE ended_at IS NULL),
room (job, taken) AS (
  SELECT job, count(*) FROM task WHERE job IS NOT NULL AND ended_at IS NULL AND state IN (1, 2) GROUP BY job
),
head (workflow, step) AS (
  SELECT workflow, min(step) FROM task WHERE workflow IS NOT NULL AND ended_at IS NULL GROUP BY workflow
)
SELECT NULL, 'LIMIT', 'over-admitted: job ' || job.name || ' has more tasks ready and running than its limit', NULL, NULL
FROM job JOIN room ON room.job = job.name
WHERE room.taken > job.concurrency AND NOT job.over_limit
UNION ALL
SELECT task.id, 'NO-STRANDED', 'stranded: held though its job has room', task.job, NULL
FROM task JOIN job ON job.name = task.job CROSS JOIN fleet LEFT JOIN room ON room.job = job.name
WHERE task.state = 3 AND NOT task.aside AND job.state = 0 AND job.delay_ms IS NULL AND task.lane IN (SELECT lane FROM live)
  AND coalesce(room.taken, 0) < coalesce(job.concurrency, fleet.window)
UNION ALL
SELECT id, 'NO-STRANDED', 'stranded: held though its job is not there', job, NULL FROM task
WHERE state = 3 AND (job IS NULL OR NOT EXISTS (SELECT 1 FROM job WHERE job.name = task.job))
UNION ALL
SELECT id, 'NO-STRANDED', 'stranded: held but not in the line of its job', NULL, NULL FROM task
WHERE state = 3 AND NOT EXISTS (
  SELECT 1 FROM held
  WHERE held.job = task.job AND held.lane = task.lane AND held.rank = iif(task.aside, 9223372036854775807, -task.priority) AND held.id = task.id
)
UNION ALL
SELECT task.id, 'NO-STRANDED', 'stranded: waits for no step before it', NULL, task.workflow
FROM task LEFT JOIN workflow ON workflow.name = task.workflow LEFT JOIN head ON head.workflow = task.workflow
WHERE task.state = 4 AND workflow.blocked_by IS NULL AND (head.step IS NULL OR head.step = task.step)
UNION ALL
SELECT NULL, 'NO-STRANDED', 'stranded: workflow ' || name || ' is blocked by a task that is not there', NULL, name FROM workflow
WHERE blocked_by IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM task WHERE task.id = workflow.blocked_by)
  AND NOT EXISTS (SELECT 1 FROM history WHERE history.id = workflow.blocked_by)
UNION ALL
SELECT task.id, 'WF-ORDER', 'has passed before its turn', NULL, NULL
FROM task LEFT JOIN workflow ON workflow.name = task.workflow LEFT JOIN head ON head.workflow = task.workflow
WHERE task.workflow IS NOT NULL AND task.state IN (1, 2)
  AND (workflow.name IS NULL OR workflow.blocked_by IS NOT NULL OR head.step <> task.step)
LIMIT ?1
