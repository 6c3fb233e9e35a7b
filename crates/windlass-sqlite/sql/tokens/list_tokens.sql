-- Every token, oldest first. A scan of a small table.
SELECT id, name, hash, scopes, created_at, expires_at, bound FROM token
ORDER BY created_at, id
