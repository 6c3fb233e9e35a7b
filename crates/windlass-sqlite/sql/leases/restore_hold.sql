-- Pauses every queue that has a lane. Scans: a restore happens once.
INSERT INTO paused_queue (queue, paused_at)
SELECT DISTINCT queue, ?1 FROM lane WHERE true
ON CONFLICT (queue) DO NOTHING
