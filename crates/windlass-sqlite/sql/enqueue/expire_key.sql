-- The task of this key ends: the store remembers the key until ?2. Index: primary keys of task, lane and key.
UPDATE key SET expires_at = ?2
WHERE (queue, key) = (
  SELECT lane.queue, task.key FROM task JOIN lane ON lane.id = task.lane WHERE task.id = ?1
) AND task = ?1
