-- Has new places and new workers numbered above all that was copied. $1 last place, $2 last worker.
SELECT
  setval('windlass.seq', greatest((SELECT s.last_value FROM windlass.seq AS s), $1)),
  setval('windlass.worker_id_seq', greatest((SELECT s.last_value FROM windlass.worker_id_seq AS s), $2))
