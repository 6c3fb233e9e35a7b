-- Jobs, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary key.
SELECT name, state, concurrency, delay_ms, last_start, over_limit, at_limit, gone_before, created_at
FROM job
WHERE name > ?1
ORDER BY name
LIMIT ?2 OFFSET ?3
