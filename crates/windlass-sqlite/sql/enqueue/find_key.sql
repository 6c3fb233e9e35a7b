-- The task of a key, and whether the history keeps it. Index: primary key of key, primary key of history.
SELECT task, digest, expires_at, EXISTS (SELECT 1 FROM history WHERE history.id = key.task) AS kept
FROM key
WHERE queue = ?1 AND key = ?2
