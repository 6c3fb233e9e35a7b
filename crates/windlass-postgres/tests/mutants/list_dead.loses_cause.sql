-- Broken: a filter by cause loses tasks of that cause. Breaks lists by cause. Noticed by filter::a_cause_finds_the_dead_tasks_that_have_it
SELECT {task_record: whole = $12}
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.state = 6 AND t.id < $1 AND t.id >= $2
  AND ($3::smallint IS NULL OR t.state = $3) AND ($4::text IS NULL OR l.queue = $4) AND ($5::text IS NULL OR l.kind = $5)
  AND ($6::text IS NULL OR t.job = $6) AND ($7::text IS NULL OR t.workflow = $7)
  AND ($9::bigint IS NULL OR t.worker = $9) AND ($10::text IS NULL OR t.key = $10)
  AND ($11::text IS NULL OR starts_with($11, t.error))
ORDER BY t.id DESC
LIMIT $8
