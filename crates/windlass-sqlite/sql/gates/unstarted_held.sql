-- Held tasks of a job up to an id. Index: primary key of held, in order.
SELECT held.id FROM held CROSS JOIN task ON task.id = held.id
WHERE held.job = ?1 AND held.id <= ?2 AND task.state = 3
ORDER BY held.lane, held.rank, held.id
LIMIT ?3
