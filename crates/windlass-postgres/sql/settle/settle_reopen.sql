-- Removes the tasks that were noted as lost of a batch, so that they are looked up again. Index: primary key. $1
-- worker, $2 settler, $3 batch.
DELETE FROM windlass.fenced AS f
WHERE f.worker = $1 AND f.settler_no = $2 AND f.batch_no = $3
RETURNING f.worker
