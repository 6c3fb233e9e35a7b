-- Suspects of a lane that wait for a worker. Index: task_suspect.
SELECT id, coalesce(suspect, 0), crashes, state, job, priority FROM task
WHERE lane = ?1 AND crashes >= 2 AND ended_at IS NULL AND (state = 1 OR state = 3 AND aside)
