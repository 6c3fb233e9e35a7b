-- Stores what blocks a workflow and which steps are forgiven. Index: primary key.
UPDATE workflow SET blocked_by = ?2, forgiven_step = ?3 WHERE name = ?1
