-- Pauses claims from a queue. $1 queue.
INSERT INTO windlass.paused_queue (queue, paused_at) VALUES ($1, windlass.now_ms())
ON CONFLICT (queue) DO NOTHING
RETURNING queue
