-- Removes a task from the line of its job. Index: primary key of held.
DELETE FROM held WHERE job = ?1 AND lane = ?2 AND rank = ?3 AND id = ?4
