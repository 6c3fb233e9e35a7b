-- Broken: a job with room lets nothing through. Breaks NO-STRANDED. Noticed by jobs::a_limit_is_never_exceeded
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 3 AND false
ORDER BY priority DESC, id
LIMIT ?3
