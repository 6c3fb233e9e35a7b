-- What a worker registered with. $1 worker. Index: primary key.
SELECT w.owner, w.kinds, w.queues FROM windlass.worker AS w WHERE w.id = $1
