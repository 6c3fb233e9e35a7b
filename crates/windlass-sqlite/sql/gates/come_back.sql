-- A suspect that stood aside is held by its job like any other. Index: primary key.
UPDATE task SET aside = 0 WHERE id = ?1 AND state = 3 AND aside
