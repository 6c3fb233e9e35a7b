-- Broken: a task that was taken back can still be claimed. Breaks LIMIT. Noticed by jobs::a_limit_that_falls_takes_ready_tasks_back_and_leaves_running_ones
UPDATE task SET state = 1 WHERE id = ?1 AND state = 1
