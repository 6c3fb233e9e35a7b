-- Counts dead tasks up to the limit above which they are not sorted. Index: task_dead, covering.
SELECT count(*) FROM (SELECT 1 FROM task WHERE ended_at IS NOT NULL LIMIT ?1)
