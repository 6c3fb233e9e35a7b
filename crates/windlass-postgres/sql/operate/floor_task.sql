-- The id of the row that is so many rows below an id. $1 below which id, $2 how many rows. Index: primary key, in
-- order.
SELECT t.id FROM windlass.task AS t WHERE t.id < $1 ORDER BY t.id DESC LIMIT 1 OFFSET $2
