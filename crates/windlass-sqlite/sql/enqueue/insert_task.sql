-- A new task. Appends: ids rise. Index: primary key.
INSERT INTO task (
  id, lane, state, priority, ready_seq, due_at, lease, attempt, max_attempts, crashes,
  timeout_ms, retry, job, workflow, step, on_failure, start_at, key, encoding, payload, trace
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
