-- $1 how many, $2 payload, $3 the first id.
INSERT INTO windlass.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
SELECT $3 + n, n, 1, 0, 0, 0, 10, 0, 1, 0, $2 FROM generate_series(1, $1::bigint) AS n
