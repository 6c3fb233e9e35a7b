-- Forgets a worker. Index: primary key.
DELETE FROM worker WHERE id = ?1
