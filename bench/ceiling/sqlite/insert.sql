INSERT INTO task (
  id, lane, state, priority, ready_seq, lease, attempt, max_attempts, crashes, encoding, payload
) VALUES (?1, 1, 1, 0, ?2, 0, 0, 10, 0, 0, ?3)
