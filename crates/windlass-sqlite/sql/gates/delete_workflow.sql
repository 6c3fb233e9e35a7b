-- Forgets a workflow. Index: primary key.
DELETE FROM workflow WHERE name = ?1
