-- Tasks that have a workflow. $1 ids. Index: primary key.
SELECT t.id, t.workflow
FROM unnest($1::bigint[]) AS u (id) JOIN windlass.task AS t ON t.id = ANY (ARRAY[u.id])
WHERE t.workflow IS NOT NULL
