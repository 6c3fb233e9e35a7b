-- Removes one task whose attempt ended it. Index: primary key.
DELETE FROM task WHERE id = ?1 AND lease = ?2 AND worker = ?3 AND state = 2
