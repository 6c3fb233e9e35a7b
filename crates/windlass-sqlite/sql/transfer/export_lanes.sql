-- Lanes for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT id, queue, kind FROM lane WHERE id > ?1 ORDER BY id LIMIT ?2 OFFSET ?3
