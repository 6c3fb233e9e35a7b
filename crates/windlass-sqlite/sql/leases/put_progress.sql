-- Stores the progress text of an attempt. Index: primary key.
UPDATE task SET progress = ?1 WHERE id = ?2 AND lease = ?3 AND worker = ?4 AND state = 2
