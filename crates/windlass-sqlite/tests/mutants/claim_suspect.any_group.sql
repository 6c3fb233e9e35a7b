-- Broken: a worker takes suspects of any group. Breaks POISON-CONTAINED. Noticed by suspects::a_worker_runs_one_group_of_suspects_at_a_time
SELECT
  id, priority, ready_seq, lease, attempt, max_attempts, crashes, timeout_ms, retry, job, workflow,
  key IS NOT NULL AS keyed, encoding, payload, step, trace, suspect
FROM task
WHERE lane = ?1 AND crashes >= 2 AND ended_at IS NULL AND state = 1 AND ?2 = ?2
ORDER BY priority DESC, ready_seq
LIMIT ?3
