-- Removes the oldest calls. ?1 how many stay. Index: primary key, in order.
DELETE FROM call WHERE id <= (SELECT c.id FROM call AS c ORDER BY c.id DESC LIMIT 1 OFFSET ?1)
