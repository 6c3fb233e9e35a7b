-- $1 id, $2 place in the line, $3 payload.
INSERT INTO windlass.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
VALUES ($1, $2, 1, 0, 0, 0, 10, 0, 1, 0, $3)
