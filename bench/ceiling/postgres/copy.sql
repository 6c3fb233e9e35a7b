COPY windlass.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
FROM STDIN (FORMAT binary)
