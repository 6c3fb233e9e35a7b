-- Adds a new ready task with nothing but a payload: half the parameters. Index: primary key.
INSERT INTO task (
  id, lane, state, priority, ready_seq, lease, attempt, max_attempts, crashes, encoding, payload
) VALUES (?1, ?2, 1, ?3, ?4, 0, 0, ?5, 0, ?6, ?7)
