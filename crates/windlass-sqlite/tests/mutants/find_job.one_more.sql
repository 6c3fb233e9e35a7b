-- Broken: a job lets one task more through than its limit says. Breaks LIMIT. Noticed by jobs::a_limit_is_never_exceeded
SELECT name, state, concurrency + 1, delay_ms, last_start, over_limit, at_limit, gone_before, again_at, created_at FROM job
WHERE name = ?1
