-- One session with its token. $1 id. Index: primary keys.
SELECT
  t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, coalesce(t.expires_at <= clock.now, false), t.bound,
  s.id, s.hash, s.created_at, s.expires_at, s.seen_at, clock.now
FROM windlass.session AS s
JOIN windlass.token AS t ON t.id = s.token
CROSS JOIN (SELECT windlass.now_ms() AS now) AS clock
WHERE s.id = $1
