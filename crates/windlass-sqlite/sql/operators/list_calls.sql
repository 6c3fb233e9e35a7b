-- Calls, newest first. ?1 below this id, ?2 how many. Index: primary key, in order.
SELECT c.id, c.at, c.who, c.call, c.about, c.result
FROM call AS c
WHERE c.id < ?1
ORDER BY c.id DESC
LIMIT ?2
