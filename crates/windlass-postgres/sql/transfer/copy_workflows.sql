-- Copies workflows in. One parameter for each column, as they are named. Index: primary key.
INSERT INTO windlass.workflow (name, created_at, blocked_by, forgiven_step, on_failure)
SELECT u.name, u.created_at, u.blocked_by, u.forgiven_step, u.on_failure
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[])
  AS u (name, created_at, blocked_by, forgiven_step, on_failure)
