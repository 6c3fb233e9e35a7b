-- Whether a registration exists, live or ended, that was not deleted. Index: primary key.
SELECT EXISTS (SELECT 1 FROM worker WHERE id = ?1)
