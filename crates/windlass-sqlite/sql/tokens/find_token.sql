-- One token. Index: primary key.
SELECT id, name, hash, scopes, created_at, expires_at, bound FROM token
WHERE id = ?1
