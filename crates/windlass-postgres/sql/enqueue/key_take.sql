-- Takes keys that are free: unknown, or remembered for long enough after their task. In sorted order, so that two
-- callers do not wait for each other in a circle; the second caller waits here until the first one commits. $1 queues,
-- $2 keys, $3 kinds, $4 encodings, $5 payloads, $6 ids. Index: primary key of key; for each its task by the primary key
-- and history_id: with OFFSET the server cannot read all ids at once instead.
INSERT INTO windlass.key AS k (queue, key, task, digest)
SELECT u.queue, u.key, u.task, windlass.digest(u.kind, u.encoding, u.payload)
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::bytea[], $6::bigint[])
  AS u (queue, key, kind, encoding, payload, task)
ORDER BY u.queue, u.key
ON CONFLICT (queue, key) DO UPDATE SET task = excluded.task, digest = excluded.digest, expires_at = NULL
WHERE k.expires_at <= windlass.now_ms()
  AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.id = k.task OFFSET 0)
  AND NOT EXISTS (SELECT 1 FROM windlass.history AS h WHERE h.id = k.task OFFSET 0)
RETURNING k.queue, k.key, k.task
