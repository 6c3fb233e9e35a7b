-- Copies unfinished and dead tasks in. One parameter for each column, as they are named. Index: primary key.
INSERT INTO windlass.task (
  id, ready_seq, due_at, claimed_at, ended_at, worker, claim_no, timeout_ms, step, lane, priority, lease, attempt,
  max_attempts, crashes, state, encoding, on_failure, retry, job, workflow, key, cancel, progress, error, log, payload,
  trace
)
SELECT
  u.id, u.ready_seq, u.due_at, u.claimed_at, u.ended_at, u.worker, u.claim_no, u.timeout_ms, u.step, u.lane, u.priority,
  u.lease, u.attempt, u.max_attempts, u.crashes, u.state, u.encoding, u.on_failure, u.retry, u.job, u.workflow, u.key,
  u.cancel, u.progress, u.error, u.log::jsonb, u.payload, u.trace
FROM unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::integer[],
  $16::smallint[], $17::smallint[], $18::smallint[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[],
  $24::text[], $25::text[], $26::text[], $27::bytea[], $28::text[]
) AS u (
  id, ready_seq, due_at, claimed_at, ended_at, worker, claim_no, timeout_ms, step, lane, priority, lease, attempt,
  max_attempts, crashes, state, encoding, on_failure, retry, job, workflow, key, cancel, progress, error, log, payload,
  trace
)
