-- Removes the oldest calls. $1 how many stay. Index: primary key, in order.
DELETE FROM windlass.call AS c
WHERE c.id <= (SELECT o.id FROM windlass.call AS o ORDER BY o.id DESC OFFSET $1 LIMIT 1)
