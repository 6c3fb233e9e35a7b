-- What keeps the server from removing dead rows: the oldest snapshot of a session, of a prepared transaction, of a
-- replication slot. Only members of pg_monitor see the sessions of other users.
SELECT h.what, h.age, h.since_ms
FROM (
  SELECT
    'session ' || a.pid || coalesce(' of ' || a.usename, '') || coalesce(' (' || nullif(a.application_name, '') || ')', '')
      || coalesce(', ' || a.state, '') AS what,
    greatest(age(a.backend_xmin), age(a.backend_xid))::bigint AS age,
    floor(extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS since_ms
  FROM pg_catalog.pg_stat_activity AS a
  WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.pid <> pg_backend_pid()
    AND a.backend_type = 'client backend'
  UNION ALL
  SELECT
    'prepared transaction ' || p.gid, age(p.transaction)::bigint,
    floor(extract(epoch FROM clock_timestamp() - p.prepared) * 1000)::bigint
  FROM pg_catalog.pg_prepared_xacts AS p
  UNION ALL
  SELECT 'replication slot ' || s.slot_name, greatest(age(s.xmin), age(s.catalog_xmin))::bigint, NULL
  FROM pg_catalog.pg_replication_slots AS s
  WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
) AS h
ORDER BY h.age DESC
LIMIT 1
