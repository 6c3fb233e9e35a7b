-- Jobs by name with their figures, held tasks counted up to a bound. $1 after this name, $2 only this one, $3 how many
-- at most, $4 bound. Index: primary key, task_job.
SELECT j.name, j.state, j.concurrency, j.delay_ms, j.created_at, j.last_start, figures.ready, figures.running, figures.held
FROM (
  SELECT j.name, j.state, j.concurrency, j.delay_ms, j.created_at, j.last_start
  FROM windlass.job AS j
  WHERE ($1::text IS NULL OR j.name > $1) AND ($2::text IS NULL OR j.name = $2)
  ORDER BY j.name
  LIMIT $3
) AS j
CROSS JOIN LATERAL (
  SELECT
    (SELECT count(*) FROM windlass.task AS t WHERE t.job = j.name AND t.state = 1) AS ready,
    (SELECT count(*) FROM windlass.task AS t WHERE t.job = j.name AND t.state = 2) AS running,
    (SELECT count(*) FROM (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 LIMIT $4) AS counted) AS held
) AS figures
ORDER BY j.name
