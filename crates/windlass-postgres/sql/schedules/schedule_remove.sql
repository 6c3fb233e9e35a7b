-- Removes a schedule. $1 name.
DELETE FROM windlass.schedule AS s WHERE s.name = $1 RETURNING s.name
