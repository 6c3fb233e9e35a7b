-- Pauses a queue. Index: primary key.
INSERT INTO paused_queue (queue, paused_at) VALUES (?1, ?2) ON CONFLICT (queue) DO NOTHING
