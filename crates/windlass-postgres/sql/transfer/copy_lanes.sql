-- Copies lanes in, in their order and in use, and pauses their queues until the copy is complete: no worker may run half
-- of it. $1 queues, $2 kinds. Index: unique (queue, kind), primary key of paused_queue.
WITH paused AS (
  INSERT INTO windlass.paused_queue (queue, paused_at)
  SELECT DISTINCT u.queue, windlass.now_ms() FROM unnest($1::text[]) AS u (queue)
  ON CONFLICT (queue) DO NOTHING
), woken AS (
  UPDATE windlass.lane AS l
  SET idle_since = NULL, retired = false
  FROM unnest($1::text[], $2::text[]) AS u (queue, kind)
  WHERE l.queue = u.queue AND l.kind = u.kind AND l.idle_since IS NOT NULL
)
INSERT INTO windlass.lane (queue, kind)
SELECT u.queue, u.kind
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (queue, kind, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.queue = u.queue AND l.kind = u.kind)
ORDER BY u.place
