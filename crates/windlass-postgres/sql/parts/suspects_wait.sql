-- Whether suspects of crashes wait for their turn in these lanes. :lanes. Index: task_suspect_waiting.
EXISTS (
    SELECT 1
    FROM windlass.task AS s
    WHERE s.crashes >= 2 AND (s.state = 1 OR (s.state = 3 AND s.aside)) AND s.lane = ANY (:lanes)
  )
