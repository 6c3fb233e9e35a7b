-- Indexes of the tasks with their bytes, the largest first. $1 name of the schema.
SELECT c.relname::text, pg_relation_size(c.oid)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = $1::text AND t.relname = 'task'
ORDER BY 2 DESC, 1
