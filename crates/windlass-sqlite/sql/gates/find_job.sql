-- One job. Index: primary key.
SELECT name, state, concurrency, delay_ms, last_start, over_limit, at_limit, gone_before, again_at, created_at FROM job
WHERE name = ?1
