-- Tasks as operators see them, from both tables: unfinished or kept. No task ends before it is enqueued, so only the
-- parts of the history that can hold them are read. $1 ids, $2 when the first of them was enqueued, $3 whether
-- payload, output and log are read. Index: primary keys, history_id.
SELECT {task_record: whole = $3}
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.id = ANY ($1)
UNION ALL
SELECT {history_record: whole = $3}
FROM windlass.history AS h JOIN windlass.lane AS l ON l.id = h.lane
WHERE h.id = ANY ($1) AND h.ended_at >= $2
