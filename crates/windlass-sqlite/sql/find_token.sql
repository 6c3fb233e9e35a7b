-- One token. Index: primary key.
SELECT id, name, hash, scopes, created_at, expires_at FROM token
WHERE id = ?1
