-- Whether tasks of a job have come as far as a job decides. Index: task_job.
SELECT EXISTS (SELECT 1 FROM task WHERE job = ?1 AND ended_at IS NULL AND state <> 4)
