-- Removes the line of a job in a lane up to a (rank, id). Index: primary key of held.
DELETE FROM held WHERE job = ?1 AND lane = ?2 AND (rank, id) <= (?3, ?4)
