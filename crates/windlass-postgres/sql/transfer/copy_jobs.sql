-- Copies jobs in. One parameter for each column, as they are named. Index: primary key.
INSERT INTO windlass.job (name, created_at, delay_ms, last_start, gone_before, concurrency, state, recount, at_limit)
SELECT u.name, u.created_at, u.delay_ms, u.last_start, u.gone_before, u.concurrency, u.state, u.recount, u.at_limit
FROM unnest(
  $1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::smallint[], $8::boolean[],
  $9::boolean[]
) AS u (name, created_at, delay_ms, last_start, gone_before, concurrency, state, recount, at_limit)
