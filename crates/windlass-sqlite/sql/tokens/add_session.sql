-- Stores a session, unless its id is taken. Index: primary key.
INSERT INTO session (id, token, hash, created_at, expires_at, seen_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?4)
ON CONFLICT (id) DO NOTHING
