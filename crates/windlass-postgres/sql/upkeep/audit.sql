-- Tasks that break a promise. Scans everything: for operators and tests. $1 how many at most.
SELECT id, 'NO-STRANDED' AS promise, 'scheduled without a due time' AS detail FROM windlass.task
WHERE state = 0 AND due_at IS NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'has a due time but is not scheduled' FROM windlass.task
WHERE state NOT IN (0, 4) AND due_at IS NOT NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'ready without a place in the line' FROM windlass.task WHERE state = 1 AND ready_seq IS NULL
UNION ALL
SELECT id, 'NO-STRANDED', 'in a state that nothing leads out of' FROM windlass.task WHERE state NOT IN (0, 1, 2, 3, 4, 6)
UNION ALL
SELECT id, 'NO-STRANDED', 'its lane does not exist' FROM windlass.task AS t
WHERE NOT EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.id = t.lane)
UNION ALL
SELECT id, 'NO-STRANDED', 'its lane is retired' FROM windlass.task AS t
WHERE EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.id = t.lane AND l.retired)
UNION ALL
SELECT id, 'SLOT-BALANCED', 'leaked: running under a worker that has ended' FROM windlass.task AS t
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
UNION ALL
SELECT t.id, 'LIMIT', 'over-admitted: job ' || j.name || ' has ' || c.n || ' ready or running, its limit is ' || j.concurrency
FROM windlass.job AS j
CROSS JOIN LATERAL (
  SELECT count(*) AS n, count(*) FILTER (WHERE t.state = 1) AS ready, max(t.id) AS id
  FROM windlass.task AS t
  WHERE t.job = j.name AND t.state IN (1, 2)
) AS c
JOIN windlass.task AS t ON t.id = c.id
-- When a limit falls, the same transaction holds ready tasks again; only running tasks may exceed it.
WHERE c.n > j.concurrency AND (c.ready > 0 OR NOT j.recount)
UNION ALL
SELECT t.id, 'NO-STRANDED', 'stranded: held while its job ' || j.name || ' has room'
FROM windlass.job AS j
CROSS JOIN LATERAL (
  SELECT min(t.id) AS id
  FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
  WHERE t.job = j.name AND t.state = 3 AND NOT t.aside AND windlass.is_live(l.queue, l.kind)
) AS t
WHERE t.id IS NOT NULL AND j.state = 0 AND j.delay_ms IS NULL
  AND (SELECT count(*) FROM windlass.task AS o WHERE o.job = j.name AND o.state IN (1, 2)) < coalesce(
    j.concurrency,
    greatest(2 * (SELECT coalesce(sum(w.slots), 0) FROM windlass.worker AS w WHERE w.ended_at IS NULL), 100)
  )
  AND NOT EXISTS (SELECT 1 FROM windlass.gate_todo AS g WHERE g.key = j.name AND g.kind <> 1)
  AND NOT EXISTS (SELECT 1 FROM windlass.freed AS f WHERE j.name = ANY (f.jobs))
UNION ALL
SELECT t.id, 'NO-STRANDED', 'stranded: ready with the room of job ' || t.job || ' in a lane that nobody serves'
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.job IS NOT NULL AND t.state = 1 AND NOT windlass.is_live(l.queue, l.kind)
UNION ALL
SELECT t.id, 'NO-STRANDED', 'stranded: held by a job that does not exist'
FROM windlass.task AS t
WHERE t.state = 3 AND NOT EXISTS (SELECT 1 FROM windlass.job AS j WHERE j.name = t.job)
  AND NOT EXISTS (SELECT 1 FROM windlass.gate_todo AS g WHERE g.key = t.job AND g.kind <> 1)
UNION ALL
SELECT t.id, 'NO-STRANDED', 'stranded: waiting with nothing before it'
FROM windlass.task AS t
WHERE t.state = 4
  AND NOT EXISTS (
    SELECT 1 FROM windlass.task AS b
    WHERE b.workflow = t.workflow AND b.state <> 6 AND (b.step < t.step OR (t.step IS NULL AND b.step IS NOT NULL))
  )
  AND NOT EXISTS (SELECT 1 FROM windlass.workflow AS w WHERE w.name = t.workflow AND w.blocked_by IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM windlass.gate_todo AS g WHERE g.key = t.workflow AND g.kind = 1)
UNION ALL
SELECT w.blocked_by, 'NO-STRANDED', 'stranded: workflow ' || w.name || ' is blocked by a task that has not ended'
FROM windlass.workflow AS w
WHERE EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.id = w.blocked_by AND t.state <> 6)
UNION ALL
SELECT t.id, 'WF-ORDER', 'has its turn in workflow ' || t.workflow || ' behind an unfinished step, or while that is blocked'
FROM windlass.task AS t
WHERE t.workflow IS NOT NULL AND t.state IN (1, 2)
  AND (
    EXISTS (SELECT 1 FROM windlass.task AS b WHERE b.workflow = t.workflow AND b.state <> 6 AND b.step < t.step)
    OR EXISTS (SELECT 1 FROM windlass.workflow AS w WHERE w.name = t.workflow AND w.blocked_by IS NOT NULL)
  )
ORDER BY 1
LIMIT $1
