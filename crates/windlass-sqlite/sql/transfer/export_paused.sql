-- Paused queues, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary key.
SELECT queue, paused_at FROM paused_queue WHERE queue > ?1 ORDER BY queue LIMIT ?2 OFFSET ?3
