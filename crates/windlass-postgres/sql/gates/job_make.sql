-- Makes the rows of jobs that have none. They must be counted first: if a job of that name was forgotten, more of its
-- places may still be about to be passed on than the new job has. The limit is the smallest that the enqueues of the
-- job gave, if any did. $1 names in order, $2 the limit otherwise. Index: primary key, gate_todo_key.
INSERT INTO windlass.job (name, created_at, concurrency, state, recount, at_limit)
SELECT u.name, windlass.now_ms(), coalesce(given.concurrency, $2), 0, true, false
FROM unnest($1::text[]) WITH ORDINALITY AS u (name, place)
LEFT JOIN LATERAL (
  SELECT g.concurrency FROM windlass.gate_todo AS g WHERE g.key = u.name AND g.kind = 4 ORDER BY g.concurrency LIMIT 1
) AS given ON true
WHERE NOT EXISTS (SELECT 1 FROM windlass.job AS j WHERE j.name = u.name)
ORDER BY u.place
ON CONFLICT (name) DO NOTHING
