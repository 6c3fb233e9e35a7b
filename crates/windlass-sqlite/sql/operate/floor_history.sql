-- The lowest id among a bounded number of rows below ?1. Index: primary key, in order.
SELECT id FROM history WHERE id < ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2
