-- Broken: held tasks of a cancelled job stay. Breaks NO-STRANDED. Noticed by job_states::a_cancelled_job_ends_what_waits_and_what_comes
SELECT id FROM task
WHERE job = ?1 AND state = 3 AND false AND id <= ?2
ORDER BY lane, priority DESC, id
LIMIT ?3
