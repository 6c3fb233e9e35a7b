-- Every lane that is not retired. Index: lane_in_use.
SELECT l.id, l.queue, l.kind FROM windlass.lane AS l WHERE NOT l.retired ORDER BY l.id
