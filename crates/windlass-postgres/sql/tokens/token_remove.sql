-- Forgets a token. $1 id.
DELETE FROM windlass.token AS t WHERE t.id = $1 RETURNING t.id
