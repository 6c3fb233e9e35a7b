-- Whether there was ever such a registration that is not forgotten. Index: primary key.
SELECT EXISTS (SELECT 1 FROM worker WHERE id = ?1)
