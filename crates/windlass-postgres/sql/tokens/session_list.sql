-- The newest sessions that have not ended, of one token or of all. $1 token, $2 how many. A scan of a small table.
SELECT
  t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, coalesce(t.expires_at <= clock.now, false), t.bound,
  s.id, s.hash, s.created_at, s.expires_at, s.seen_at, clock.now
FROM windlass.session AS s
JOIN windlass.token AS t ON t.id = s.token
CROSS JOIN (SELECT windlass.now_ms() AS now) AS clock
WHERE s.expires_at > clock.now AND s.token = coalesce($1, s.token)
ORDER BY s.created_at DESC, s.id DESC
LIMIT $2
