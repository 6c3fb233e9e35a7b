-- Forgets a token. Index: primary key.
DELETE FROM token WHERE id = ?1
