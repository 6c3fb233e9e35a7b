-- Every token, oldest first.
SELECT t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, coalesce(t.expires_at <= windlass.now_ms(), false),
  t.bound
FROM windlass.token AS t
ORDER BY t.created_at, t.id
