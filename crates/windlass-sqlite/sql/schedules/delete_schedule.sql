-- Removes a schedule. Index: primary key.
DELETE FROM schedule WHERE name = ?1
