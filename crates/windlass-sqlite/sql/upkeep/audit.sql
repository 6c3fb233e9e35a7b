-- Tasks that break a promise. Scans everything: for operators and tests.
SELECT id, 'NO-STRANDED', 'scheduled without a due time' FROM task WHERE state = 0 AND due_at IS NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'has a due time but is not scheduled' FROM task WHERE state <> 0 AND due_at IS NOT NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'ready without a place in the line' FROM task WHERE state = 1 AND ready_seq IS NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'in a state that nothing leads out of' FROM task WHERE state NOT IN (0, 1, 2, 3, 4, 6)
UNION ALL
SELECT id, 'NO-STRANDED', 'its lane does not exist' FROM task
WHERE NOT EXISTS (SELECT 1 FROM lane WHERE lane.id = task.lane)
UNION ALL
SELECT id, 'NO-STRANDED', 'its lane is retired' FROM task
WHERE EXISTS (SELECT 1 FROM lane WHERE lane.id = task.lane AND lane.retired)
UNION ALL
SELECT id, 'SLOT-BALANCED', 'leaked: running under a worker that has ended' FROM task
WHERE state = 2
  AND NOT EXISTS (SELECT 1 FROM worker WHERE worker.id = task.worker AND worker.ended_at IS NULL)
UNION ALL
SELECT id, 'ONE-LEASE', 'running without a lease' FROM task WHERE state = 2 AND (lease < 1 OR worker IS NULL)
UNION ALL
SELECT id, 'ATTEMPT-BOUND', 'more attempts than granted' FROM task WHERE attempt > max_attempts
UNION ALL
SELECT id, 'ONE-TERMINAL', 'dead without an end, or an end without being dead' FROM task
WHERE (state = 6) <> (ended_at IS NOT NULL)
UNION ALL
SELECT task.id, 'ONE-TERMINAL', 'ended and unfinished at once' FROM task JOIN history ON history.id = task.id
UNION ALL
SELECT id, 'ENQ-IDEMPOTENT', 'its key is not remembered' FROM task
WHERE key IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM lane JOIN key ON key.queue = lane.queue AND key.key = task.key
  WHERE lane.id = task.lane AND key.task = task.id
)
LIMIT ?1
