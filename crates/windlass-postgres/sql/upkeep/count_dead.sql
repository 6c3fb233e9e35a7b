-- How many dead tasks there are, up to a bound. $1 bound. Index: task_dead.
SELECT count(*) FROM (SELECT 1 FROM windlass.task AS t WHERE t.state = 6 LIMIT $1) AS dead
