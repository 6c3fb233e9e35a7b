-- Makes the rows of jobs that have none. They are to be counted at first: places of a job of that name that was forgotten may still
-- be about to be passed on, more than this one has. $1 names in order, $2 their limit. Index: primary key.
INSERT INTO windlass.job (name, created_at, concurrency, state, recount, at_limit)
SELECT u.name, windlass.now_ms(), $2, 0, true, false
FROM unnest($1::text[]) WITH ORDINALITY AS u (name, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.job AS j WHERE j.name = u.name)
ORDER BY u.place
ON CONFLICT (name) DO NOTHING
