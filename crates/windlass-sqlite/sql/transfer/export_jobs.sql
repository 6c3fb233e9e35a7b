-- Jobs for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT name, state, concurrency, delay_ms, last_start, over_limit, at_limit, gone_before, created_at
FROM job
WHERE name > ?1
ORDER BY name
LIMIT ?2 OFFSET ?3
