-- Copies schedules in. One parameter for each column, as they are named. Index: primary key.
INSERT INTO windlass.schedule (name, next_at, last_at, last_task, paused, spec)
SELECT u.name, u.next_at, u.last_at, u.last_task, u.paused, u.spec
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::text[])
  AS u (name, next_at, last_at, last_task, paused, spec)
