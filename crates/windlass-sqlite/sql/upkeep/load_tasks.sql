-- The state of every unfinished task: one scan when the store is opened.
SELECT
  id, lane, state, crashes, ready_seq, lease, attempt, worker, claim_no, claimed_at, key IS NOT NULL,
  length(payload), cancel, priority, job, workflow, step,
  coalesce(suspect, 0), aside, max_attempts
FROM task
