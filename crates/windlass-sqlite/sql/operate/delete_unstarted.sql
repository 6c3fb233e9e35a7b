-- Removes one task that was cancelled before it ran (again). Index: primary key.
DELETE FROM task WHERE id = ?1 AND state IN (0, 1, 3, 4)
