-- Adds a new task that a worker holds from the start. Index: primary key.
INSERT INTO task (
  id, lane, state, priority, ready_seq, lease, attempt, max_attempts, crashes, timeout_ms, retry, encoding, payload, trace,
  worker, claim_no, claimed_at
) VALUES (?1, ?2, 2, ?3, ?4, 1, 1, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
