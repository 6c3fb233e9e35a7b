-- Broken: a new job has the default limit and ignores that of the enqueue. Breaks LIMIT. Noticed by jobs::the_enqueue_that_makes_a_job_may_give_its_limit
INSERT INTO windlass.job (name, created_at, concurrency, state, recount, at_limit)
SELECT u.name, windlass.now_ms(), $2, 0, true, false
FROM unnest($1::text[]) WITH ORDINALITY AS u (name, place)
LEFT JOIN LATERAL (
  SELECT g.concurrency FROM windlass.gate_todo AS g WHERE g.key = u.name AND g.kind = 4 ORDER BY g.concurrency LIMIT 1
) AS given ON true
WHERE NOT EXISTS (SELECT 1 FROM windlass.job AS j WHERE j.name = u.name)
ORDER BY u.place
ON CONFLICT (name) DO NOTHING
