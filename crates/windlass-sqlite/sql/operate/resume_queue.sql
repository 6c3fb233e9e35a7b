-- Resumes a queue. Index: primary key.
DELETE FROM paused_queue WHERE queue = ?1
