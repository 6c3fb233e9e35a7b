-- Broken: a task whose transaction missed both looks is never found. Breaks NO-STRANDED. Noticed by own::a_look_brings_a_lane_back_whose_task_came_unseen
WITH RECURSIVE line AS (
  (SELECT t.lane FROM windlass.task AS t WHERE t.state = 1 AND t.crashes < 2 ORDER BY t.lane LIMIT 1)
  UNION ALL
  SELECT (
    SELECT t.lane FROM windlass.task AS t
    WHERE t.state = 1 AND t.crashes < 2 AND t.lane > line.lane
    ORDER BY t.lane
    LIMIT 1
  )
  FROM line
  WHERE line.lane IS NOT NULL
), suspect AS (
  (SELECT t.lane FROM windlass.task AS t WHERE t.state = 1 AND t.crashes >= 2 ORDER BY t.lane LIMIT 1)
  UNION ALL
  SELECT (
    SELECT t.lane FROM windlass.task AS t
    WHERE t.state = 1 AND t.crashes >= 2 AND t.lane > suspect.lane
    ORDER BY t.lane
    LIMIT 1
  )
  FROM suspect
  WHERE suspect.lane IS NOT NULL
)
SELECT windlass.wake_lanes(ARRAY(
  SELECT l.id
  FROM (SELECT lane FROM line UNION SELECT lane FROM suspect) AS seen
  JOIN windlass.lane AS l ON l.id = seen.lane
  WHERE l.retired AND false
))
