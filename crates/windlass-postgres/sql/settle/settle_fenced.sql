-- Notes which tasks of a batch were lost. $1 worker, $2 settler, $3 batch, $4 tasks.
INSERT INTO windlass.fenced (worker, settler_no, batch_no, task)
SELECT $1, $2, $3, u.id FROM unnest($4::bigint[]) AS u (id)
ON CONFLICT DO NOTHING
