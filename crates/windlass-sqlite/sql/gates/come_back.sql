-- Clears the aside mark of a suspect: its job holds it like any other task. Index: primary key.
UPDATE task SET aside = 0 WHERE id = ?1 AND state = 3 AND aside
