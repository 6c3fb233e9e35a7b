-- Jobs by name. Index: primary key, in order.
SELECT name, state, concurrency, delay_ms, last_start, over_limit, at_limit, gone_before, again_at, created_at FROM job
WHERE name > ?1
ORDER BY name
LIMIT ?2
