-- Forgets a job. Index: primary key.
DELETE FROM job WHERE name = ?1
