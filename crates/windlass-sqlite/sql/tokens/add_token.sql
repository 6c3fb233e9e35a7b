-- Stores a token, unless its id is taken or there are too many. A scan of a small table.
INSERT INTO token (id, name, hash, scopes, created_at, expires_at, bound)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE (SELECT count(*) FROM token) < ?8
ON CONFLICT (id) DO NOTHING
