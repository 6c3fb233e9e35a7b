-- The newest sessions that have not ended, of one token or of all. A scan of a small table.
SELECT
  t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, t.bound,
  s.id, s.hash, s.created_at, s.expires_at, s.seen_at
FROM session AS s
JOIN token AS t ON t.id = s.token
WHERE s.expires_at > ?1 AND (?2 IS NULL OR s.token = ?2)
ORDER BY s.created_at DESC, s.id DESC
LIMIT ?3
