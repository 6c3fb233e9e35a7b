-- Adds a token, unless its id is taken or there are too many. $1 id, $2 name, $3 hash, $4 scopes, $5 for how long, $6
-- how many, $7 what it is bound to.
INSERT INTO windlass.token AS t (id, name, hash, scopes, created_at, expires_at, bound)
SELECT $1, $2, $3, $4, clock.now, clock.now + $5, $7
FROM (SELECT windlass.now_ms() AS now) AS clock
WHERE (SELECT count(*) FROM windlass.token) < $6
ON CONFLICT (id) DO NOTHING
RETURNING t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, coalesce(t.expires_at <= windlass.now_ms(), false),
  t.bound
