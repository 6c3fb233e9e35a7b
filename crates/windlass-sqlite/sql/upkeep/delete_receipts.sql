-- Forgets the receipts of a worker. Index: primary key.
DELETE FROM receipt WHERE worker = ?1
