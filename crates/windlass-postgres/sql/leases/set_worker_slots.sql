-- Sets how many slots a worker has, if its lease is in force. Answers whether it was, and whether there is such a
-- worker. Index: primary key. $1 worker, $2 slots.
WITH changed AS (
  UPDATE windlass.worker AS w SET slots = $2
  WHERE w.id = $1 AND w.ended_at IS NULL AND w.expires_at > windlass.now_ms()
  RETURNING w.id
)
SELECT EXISTS (SELECT 1 FROM changed), EXISTS (SELECT 1 FROM windlass.worker AS w WHERE w.id = $1)
