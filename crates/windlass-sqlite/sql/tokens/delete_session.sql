-- Ends a session. Index: primary key.
DELETE FROM session WHERE id = ?1
