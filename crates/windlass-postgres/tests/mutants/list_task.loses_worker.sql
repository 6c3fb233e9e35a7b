-- Broken: a filter by worker loses the tasks of that worker. Breaks lists by worker. Noticed by filter::a_worker_finds_the_tasks_that_it_runs_or_ran
SELECT {task_record: whole = $12}
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.id < $1 AND t.id >= $2
  AND ($3::smallint IS NULL OR t.state = $3) AND ($4::text IS NULL OR l.queue = $4) AND ($5::text IS NULL OR l.kind = $5)
  AND ($6::text IS NULL OR t.job = $6) AND ($7::text IS NULL OR t.workflow = $7)
  AND ($9::bigint IS NULL OR t.worker < $9) AND ($10::text IS NULL OR t.key = $10)
  AND ($11::text IS NULL OR starts_with(t.error, $11))
ORDER BY t.id DESC
LIMIT $8
