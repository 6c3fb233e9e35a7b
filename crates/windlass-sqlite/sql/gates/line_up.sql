-- Adds a task to the line of its job; an earlier row of it may still be there. Index: primary key of held.
INSERT INTO held (job, lane, rank, id, crashes) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (job, lane, rank, id) DO UPDATE SET crashes = excluded.crashes
