-- Notes which step blocks each workflow. $1 names, $2 tasks. Index: primary key.
UPDATE windlass.workflow AS w
SET blocked_by = u.task
FROM unnest($1::text[], $2::bigint[]) AS u (name, task)
WHERE w.name = ANY (ARRAY[u.name]) AND w.blocked_by IS NULL
