-- Whether a task is one that a list asks for. :task; parameters as in list_task.sql.
($3::smallint IS NULL OR :task.state = $3) AND ($4::text IS NULL OR l.queue = $4) AND ($5::text IS NULL OR l.kind = $5)
  AND ($6::text IS NULL OR :task.job = $6) AND ($7::text IS NULL OR :task.workflow = $7)
  AND ($9::bigint IS NULL OR :task.worker = $9) AND ($10::text IS NULL OR :task.key = $10)
  AND ($11::text IS NULL OR starts_with(:task.error, $11))
