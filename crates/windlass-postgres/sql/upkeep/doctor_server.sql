-- The limits of the server, and how much of them is used.
SELECT
  current_setting('server_version'),
  current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
  (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_catalog.pg_stat_database),
  (SELECT count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.application_name LIKE 'windlass%'),
  current_setting('autovacuum') = 'on',
  current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') = 'on',
  pg_notification_queue_usage(),
  pg_has_role(current_user, 'pg_monitor', 'MEMBER'),
  (SELECT count(*) FROM windlass.part),
  (SELECT max(p.until_ms) - windlass.now_ms() FROM windlass.part AS p),
  (SELECT r.expires_at > windlass.now_ms() FROM windlass.leader AS r WHERE r.id = 1),
  (SELECT r.term FROM windlass.leader AS r WHERE r.id = 1)
