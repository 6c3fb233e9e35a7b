-- Whether a task has ended or does not exist. Index: primary keys.
SELECT
  (SELECT state FROM task WHERE id = ?1),
  (SELECT state FROM history WHERE id = ?1)
