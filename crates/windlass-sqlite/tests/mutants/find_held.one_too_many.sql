-- Broken: a job lets one task more through than it has room for. Breaks LIMIT. Noticed by jobs::a_limit_is_never_exceeded
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 3
ORDER BY priority DESC, id
LIMIT ?3 + 1
