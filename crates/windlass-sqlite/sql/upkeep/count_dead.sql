-- Whether there are more dead tasks than may be sorted. Index: task_dead, covering.
SELECT count(*) FROM (SELECT 1 FROM task WHERE ended_at IS NOT NULL LIMIT ?1)
