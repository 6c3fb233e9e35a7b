-- Makes the rows of jobs that have none. $1 names in order, $2 their limit. Index: primary key.
INSERT INTO windlass.job (name, created_at, concurrency, state, recount, at_limit)
SELECT u.name, windlass.now_ms(), $2, 0, false, false
FROM unnest($1::text[]) WITH ORDINALITY AS u (name, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.job AS j WHERE j.name = u.name)
ORDER BY u.place
ON CONFLICT (name) DO NOTHING
