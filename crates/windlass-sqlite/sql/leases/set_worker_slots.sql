-- Sets how many slots a worker has. Index: primary key.
UPDATE worker SET slots = ?2 WHERE id = ?1 AND ended_at IS NULL
