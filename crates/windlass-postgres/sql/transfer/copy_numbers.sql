-- Makes the numbers of new ready tasks and new workers larger than all copied ones. $1 last ready number, $2 last
-- worker.
SELECT
  setval('windlass.seq', greatest((SELECT s.last_value FROM windlass.seq AS s), $1)),
  setval('windlass.worker_id_seq', greatest((SELECT s.last_value FROM windlass.worker_id_seq AS s), $2))
