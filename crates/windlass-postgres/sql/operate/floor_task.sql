-- How far down a bounded number of rows reaches. $1 below which id, $2 how many rows. Index: primary key, in order.
SELECT t.id FROM windlass.task AS t WHERE t.id < $1 ORDER BY t.id DESC LIMIT 1 OFFSET $2
