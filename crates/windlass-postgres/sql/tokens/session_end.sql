-- Ends a session. $1 id. Index: primary key.
DELETE FROM windlass.session AS s WHERE s.id = $1 RETURNING s.id
