-- Who has these keys, and whether it is the same task. In a statement of its own, after the keys were tried: only then is
-- what another transaction committed meanwhile seen. Parameters as in key_take.sql, without the ids.
-- What a key stands for is not known if it was copied after its task was gone. Index: primary key of key.
SELECT k.queue, k.key, k.task, k.digest = windlass.digest(u.kind, u.encoding, u.payload) OR k.digest = ''
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::bytea[]) AS u (queue, key, kind, encoding, payload)
JOIN windlass.key AS k ON k.queue = ANY (ARRAY[u.queue]) AND k.key = ANY (ARRAY[u.key])
