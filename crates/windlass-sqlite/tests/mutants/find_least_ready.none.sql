-- Broken: a limit that falls leaves ready tasks ready. Breaks LIMIT. Noticed by jobs::a_limit_that_falls_takes_ready_tasks_back_and_leaves_running_ones
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 1 AND false
ORDER BY priority, ready_seq DESC
LIMIT ?3
