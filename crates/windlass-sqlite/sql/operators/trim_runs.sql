-- Removes the oldest ended runs. ?1 how many stay. Index: primary key, of a small table.
DELETE FROM run WHERE id IN (
  SELECT r.id FROM run AS r WHERE r.running = 0
  ORDER BY r.id DESC
  LIMIT -1 OFFSET ?1
)
