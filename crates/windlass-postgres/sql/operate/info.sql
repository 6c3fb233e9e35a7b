-- The version, the settings and the sizes of the server and of the schema. $1 name of the schema.
SELECT
  current_setting('server_version'),
  current_setting('synchronous_commit') NOT IN ('off') AND current_setting('fsync') = 'on',
  (
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relkind = 'r'
  ),
  (
    SELECT coalesce(sum(greatest(pg_stat_get_live_tuples(c.oid), 0)), 0)::bigint
    FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'windlass.history'::regclass
  ),
  (
    SELECT coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint
    FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = 'windlass.history'::regclass
  )
