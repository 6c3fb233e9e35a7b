-- The first ready suspects of a group in a lane. ?1 lane, ?2 group, ?3 at most so many. Index: task_suspect;
-- suspects are few.
SELECT
  id, priority, ready_seq, lease, attempt, max_attempts, crashes, timeout_ms, retry, job, workflow,
  key IS NOT NULL AS keyed, encoding, payload, step, trace, suspect
FROM task
WHERE lane = ?1 AND crashes >= 2 AND ended_at IS NULL AND state = 1 AND coalesce(suspect, 0) = ?2
ORDER BY priority DESC, ready_seq
LIMIT ?3
