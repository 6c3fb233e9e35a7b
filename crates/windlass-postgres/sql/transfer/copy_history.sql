-- Copies done and cancelled tasks in. One parameter for each column, as they are named. Index: none is used.
INSERT INTO windlass.history (
  id, started_at, ended_at, worker, timeout_ms, lane, priority, lease, attempt, max_attempts, state, encoding,
  output_encoding, ran, job, workflow, key, progress, error, log, output, payload
)
SELECT
  u.id, u.started_at, u.ended_at, u.worker, u.timeout_ms, u.lane, u.priority, u.lease, u.attempt, u.max_attempts, u.state,
  u.encoding, u.output_encoding, u.ran, u.job, u.workflow, u.key, u.progress, u.error, u.log::jsonb, u.output, u.payload
FROM unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::integer[], $8::integer[],
  $9::integer[], $10::integer[], $11::smallint[], $12::smallint[], $13::smallint[], $14::boolean[], $15::text[],
  $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::bytea[], $22::bytea[]
) AS u (
  id, started_at, ended_at, worker, timeout_ms, lane, priority, lease, attempt, max_attempts, state, encoding,
  output_encoding, ran, job, workflow, key, progress, error, log, output, payload
)
