-- Broken: a task that becomes due is ready without regard to its job. Breaks LIMIT. Noticed by jobs::a_task_that_becomes_due_asks_its_job
UPDATE task SET state = iif(?3 = 3, 1, ?3), due_at = NULL, ready_seq = ?1 WHERE id = ?2 AND state = 0
