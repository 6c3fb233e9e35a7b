-- Broken: a task that was taken back can still be claimed. Breaks LIMIT. Noticed by jobs::a_lower_limit_takes_back_ready_tasks_but_no_running_ones
UPDATE task SET state = 1 WHERE id = ?1 AND state = 1
