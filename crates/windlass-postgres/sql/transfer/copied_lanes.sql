-- Every lane: the history of a copy also names retired ones. It reads the whole table.
SELECT l.id, l.queue, l.kind FROM windlass.lane AS l
