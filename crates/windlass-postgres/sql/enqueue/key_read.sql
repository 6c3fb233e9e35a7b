-- Which tasks have these keys, and whether they are the same tasks. A statement of its own after the keys were taken:
-- only such a statement sees what another transaction committed meanwhile. Parameters as in key_take.sql, without the
-- ids. If a key was copied after its task was removed, its kind and payload are unknown. Index: primary key of key.
SELECT k.queue, k.key, k.task, k.digest = windlass.digest(u.kind, u.encoding, u.payload) OR k.digest = ''
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::bytea[]) AS u (queue, key, kind, encoding, payload)
JOIN windlass.key AS k ON k.queue = ANY (ARRAY[u.queue]) AND k.key = ANY (ARRAY[u.key])
