-- Stores the number of a batch and its answer. Index: primary key.
INSERT INTO receipt (worker, settler_no, batch_no, answer) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (worker, settler_no) DO UPDATE SET batch_no = excluded.batch_no, answer = excluded.answer
