-- Ends a registration; the row stays as a tombstone. $1 worker.
UPDATE windlass.worker AS w
SET ended_at = windlass.now_ms(), available = 0, in_flight = 0
WHERE w.id = $1 AND w.ended_at IS NULL
