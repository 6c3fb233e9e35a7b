-- Writes what holds a workflow up. Index: primary key.
UPDATE workflow SET blocked_by = ?2, forgiven_step = ?3 WHERE name = ?1
