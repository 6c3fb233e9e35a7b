-- Starts the time for which the keys of the tasks of `gone` are remembered. :start, :ttl. Index: primary key of key.
remembered AS (
  UPDATE windlass.key AS k
  SET expires_at = :start + :ttl
  FROM gone AS g JOIN windlass.lane AS l ON l.id = g.lane
  WHERE g.key IS NOT NULL AND k.queue = ANY (ARRAY[l.queue]) AND k.key = ANY (ARRAY[g.key]) AND k.task = g.id
)
