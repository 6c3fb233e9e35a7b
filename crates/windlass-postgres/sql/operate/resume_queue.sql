-- Resumes claims from a queue, and notifies every worker. $1 queue, $2 channel.
WITH resumed AS (
  DELETE FROM windlass.paused_queue AS p WHERE p.queue = $1 RETURNING p.queue
)
SELECT resumed.queue, pg_notify($2, '*')::text FROM resumed
