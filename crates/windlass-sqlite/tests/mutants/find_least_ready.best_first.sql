-- Broken: the best of the ready tasks is taken back. Breaks the order of a job. Noticed by jobs::a_task_that_outranks_a_ready_one_takes_its_place
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 1
ORDER BY priority DESC, ready_seq
LIMIT ?3
