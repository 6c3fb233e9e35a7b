-- How a kept task ended. Index: primary key.
SELECT state FROM history WHERE id = ?1
