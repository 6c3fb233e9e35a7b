-- Forgets a key. Index: primary key.
DELETE FROM key WHERE queue = ?1 AND key = ?2
