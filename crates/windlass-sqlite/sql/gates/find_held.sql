-- The line of a job in a lane, after a (rank, id). Index: primary key of held, in order.
SELECT rank, id, crashes FROM held
WHERE job = ?1 AND lane = ?2 AND (rank, id) > (?3, ?4) AND rank < 9223372036854775807
ORDER BY rank, id
LIMIT ?5
