-- Removes a stretch of kept tasks that ended early enough. Index: primary key.
DELETE FROM history WHERE id > ?1 AND id <= ?2 AND ended_at <= ?3
