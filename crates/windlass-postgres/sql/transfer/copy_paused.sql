-- Copies paused queues in. $1 queues, $2 times. Index: primary key.
INSERT INTO windlass.paused_queue (queue, paused_at)
SELECT u.queue, u.paused_at FROM unnest($1::text[], $2::bigint[]) AS u (queue, paused_at)
ON CONFLICT (queue) DO UPDATE SET paused_at = excluded.paused_at
