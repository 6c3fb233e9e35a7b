-- Lanes, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary key.
SELECT id, queue, kind FROM lane WHERE id > ?1 ORDER BY id LIMIT ?2 OFFSET ?3
