-- Removes the first tasks of a line that are no longer held, at most so many. Index: primary keys.
DELETE FROM held
WHERE job = ?1 AND lane = ?2 AND id IN (
  SELECT line.id FROM held AS line
  WHERE line.job = ?1 AND line.lane = ?2
    AND NOT EXISTS (SELECT 1 FROM task WHERE task.id = line.id AND task.state = 3)
  ORDER BY line.rank, line.id
  LIMIT ?3
)
