-- Tables that are written all the time: live and dead rows as the server estimates them, bytes, the last vacuum. $1
-- name of the schema.
SELECT
  c.relname::text, greatest(pg_stat_get_live_tuples(c.oid), 0), greatest(pg_stat_get_dead_tuples(c.oid), 0),
  pg_total_relation_size(c.oid),
  floor(extract(epoch FROM greatest(pg_stat_get_last_autovacuum_time(c.oid), pg_stat_get_last_vacuum_time(c.oid))) * 1000)::bigint,
  coalesce(c.reloptions::text LIKE '%autovacuum_enabled=off%' OR c.reloptions::text LIKE '%autovacuum_enabled=false%', false),
  pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname IN ('task', 'key', 'worker', 'receipt', 'doorbell')
ORDER BY c.relname
