-- Every lane.
SELECT l.id, l.queue, l.kind FROM windlass.lane AS l ORDER BY l.id
