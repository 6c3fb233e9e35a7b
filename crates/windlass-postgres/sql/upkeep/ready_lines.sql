-- The number in the ready line that was given out last, and for each lane with a ready task the number of its next
-- task. $1 how many lanes at most. Index: lane_in_use, task_ready.
SELECT s.last_value, h.lane, h.place
FROM windlass.seq AS s
LEFT JOIN LATERAL (
  SELECT l.id AS lane, t.ready_seq AS place
  FROM windlass.lane AS l
  CROSS JOIN LATERAL (
    SELECT task.ready_seq
    FROM windlass.task
    WHERE task.state = 1 AND task.crashes < 2 AND task.lane = l.id
    ORDER BY task.priority DESC, task.ready_seq
    LIMIT 1
  ) AS t
  WHERE NOT l.retired
  ORDER BY l.id
  LIMIT $1
) AS h ON true
