-- The columns of a task that was claimed, as claim/row.rs reads them.
id, lease, attempt, max_attempts, crashes, lane, priority, ready_seq, encoding, payload, timeout_ms, retry, job, workflow, trace,
  paced, claimed_at
