-- Paused queues for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT queue, paused_at FROM paused_queue WHERE queue > ?1 ORDER BY queue LIMIT ?2 OFFSET ?3
