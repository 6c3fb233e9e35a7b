-- Notes a batch, unless it or a later one is noted already, or the worker's row does not exist. If a copy of the batch
-- is still on its way, the row lock makes this one wait. Index: primary keys of worker and receipt. $1 worker, $2
-- settler, $3 batch.
INSERT INTO windlass.receipt AS r (worker, settler_no, batch_no)
SELECT w.id, $2, $3 FROM windlass.worker AS w WHERE w.id = $1 AND w.ended_at IS NULL
ON CONFLICT (worker, settler_no) DO UPDATE SET batch_no = excluded.batch_no WHERE r.batch_no < excluded.batch_no
RETURNING r.worker
