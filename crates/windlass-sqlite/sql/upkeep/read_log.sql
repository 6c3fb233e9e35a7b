-- The ended attempts of a running task. Index: primary key.
SELECT log FROM task WHERE id = ?1
