-- Broken: tasks are let through by age alone. Breaks the order of a job. Noticed by jobs::a_jobs_next_task_is_that_of_the_highest_priority_then_the_oldest
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 3
ORDER BY id
LIMIT ?3
