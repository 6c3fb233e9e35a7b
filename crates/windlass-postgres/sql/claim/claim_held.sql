-- How many tasks a worker holds, counted to two, and its suspects by group: the most crashes and the last start. Index:
-- task_running, task_suspect_running. $1 worker.
SELECT h.n, g.suspect, g.crashes, g.claimed_at, windlass.now_ms()
FROM (
  SELECT count(*) AS n
  FROM (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = $1 LIMIT 2) AS held
) AS h
LEFT JOIN LATERAL (
  SELECT coalesce(t.suspect, 0) AS suspect, max(t.crashes) AS crashes, max(t.claimed_at) AS claimed_at
  FROM windlass.task AS t
  WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = $1
  GROUP BY 1
) AS g ON true
