-- Copies idempotency keys in. The digest of each is computed from its task; if the task was removed, it is unknown and
-- left empty. $1 queues, $2 keys, $3 tasks, $4 when they are forgotten. Index: primary keys of key, task and lane,
-- history_id.
INSERT INTO windlass.key (queue, key, task, digest, expires_at)
SELECT
  u.queue, u.key, u.task,
  coalesce(
    (
      SELECT windlass.digest(l.kind, t.encoding, t.payload)
      FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
      WHERE t.id = u.task
    ),
    (
      SELECT windlass.digest(l.kind, h.encoding, h.payload)
      FROM windlass.history AS h JOIN windlass.lane AS l ON l.id = h.lane
      WHERE h.id = u.task
    ),
    ''
  ),
  u.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS u (queue, key, task, expires_at)
