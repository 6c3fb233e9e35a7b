-- Tasks that break a promise. Scans everything: for operators and tests. $1 how many at most.
SELECT id, 'NO-STRANDED' AS promise, 'scheduled without a due time' AS detail FROM windlass.task
WHERE state = 0 AND due_at IS NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'has a due time but is not scheduled' FROM windlass.task
WHERE state <> 0 AND due_at IS NOT NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'ready without a place in the line' FROM windlass.task WHERE state = 1 AND ready_seq IS NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'in a state that nothing leads out of' FROM windlass.task WHERE state NOT IN (0, 1, 2, 6)
UNION ALL
SELECT id, 'NO-STRANDED', 'its lane does not exist' FROM windlass.task AS t
WHERE NOT EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.id = t.lane)
UNION ALL
SELECT id, 'NO-STRANDED', 'running under a worker that has ended' FROM windlass.task AS t
WHERE t.state = 2
  AND NOT EXISTS (SELECT 1 FROM windlass.worker AS w WHERE w.id = t.worker AND w.ended_at IS NULL)
UNION ALL
SELECT id, 'ONE-LEASE', 'running without a lease' FROM windlass.task WHERE state = 2 AND (lease < 1 OR worker IS NULL)
UNION ALL
SELECT id, 'ATTEMPT-BOUND', 'more attempts than granted' FROM windlass.task WHERE attempt > max_attempts
UNION ALL
SELECT id, 'ONE-TERMINAL', 'dead without an end, or an end without being dead' FROM windlass.task
WHERE (state = 6) <> (ended_at IS NOT NULL)
UNION ALL
SELECT t.id, 'ONE-TERMINAL', 'ended and unfinished at once'
FROM windlass.task AS t
WHERE EXISTS (SELECT 1 FROM windlass.history AS h WHERE h.id = t.id)
UNION ALL
SELECT t.id, 'ENQ-IDEMPOTENT', 'its key is not remembered'
FROM windlass.task AS t
WHERE t.key IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM windlass.lane AS l JOIN windlass.key AS k ON k.queue = l.queue AND k.key = t.key
  WHERE l.id = t.lane AND k.task = t.id
)
ORDER BY 1
LIMIT $1
