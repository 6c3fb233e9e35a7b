-- The tables that every task writes to: dead rows as the server estimates them, and whether this user may vacuum them.
-- $1 name of the schema, $2 names of the tables.
SELECT
  c.relname::text, greatest(pg_stat_get_dead_tuples(c.oid), 0), pg_has_role(c.relowner, 'USAGE'),
  coalesce(c.reloptions::text LIKE '%autovacuum_enabled=off%' OR c.reloptions::text LIKE '%autovacuum_enabled=false%', false)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = ANY ($2::text[])
ORDER BY c.relname
