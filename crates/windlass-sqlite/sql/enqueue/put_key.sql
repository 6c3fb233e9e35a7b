-- Gives a key to a task; a task whose key has expired loses it. Index: primary key.
INSERT INTO key (queue, key, task, digest, expires_at) VALUES (?1, ?2, ?3, ?4, NULL)
ON CONFLICT (queue, key) DO UPDATE SET task = excluded.task, digest = excluded.digest, expires_at = NULL
