-- One session with its token. Index: primary keys.
SELECT
  t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, t.bound,
  s.id, s.hash, s.created_at, s.expires_at, s.seen_at
FROM session AS s
JOIN token AS t ON t.id = s.token
WHERE s.id = ?1
