-- What a worker registered with. Index: primary key.
SELECT owner, kinds, queues FROM worker
WHERE id = ?1
