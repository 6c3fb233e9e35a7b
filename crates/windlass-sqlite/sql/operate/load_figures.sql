-- The stored figures and the highest ids. Index: primary keys.
SELECT
  last_id, history_rows, history_bytes,
  coalesce((SELECT max(id) FROM task), 0),
  coalesce((SELECT max(id) FROM history), 0)
FROM figure
WHERE id = 1
