-- Writes what admission found about jobs. $1 locked jobs, $2 more runs than the limit allows, $3 at the limit, $4 last
-- start that was recorded. Index: primary key.
UPDATE windlass.job AS j
SET recount = u.recount, at_limit = u.at_limit, last_start = u.last_start
FROM unnest($1::text[], $2::boolean[], $3::boolean[], $4::bigint[]) AS u (name, recount, at_limit, last_start)
WHERE j.name = ANY (ARRAY[u.name])
