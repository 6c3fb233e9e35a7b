-- Broken: tasks by cached numbers leave their lanes retired. Breaks NO-STRANDED. Noticed by own::a_number_that_was_read_before_brings_its_lane_back
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), item AS MATERIALIZED (
  SELECT
    u.lane, u.priority, u.max_attempts, u.encoding, u.payload, u.timeout_ms, u.retry, u.job, u.workflow, u.on_failure, u.key,
    u.id, u.trace, u.job_concurrency, nextval('windlass.seq') AS seq,
    CASE
      WHEN coalesce(clock.now + u.delay_ms, u.due_at) > clock.now THEN coalesce(clock.now + u.delay_ms, u.due_at)
    END AS due_at,
    CASE
      WHEN u.workflow IS NOT NULL THEN 4
      WHEN coalesce(clock.now + u.delay_ms, u.due_at) > clock.now THEN 0
      WHEN u.job IS NOT NULL THEN 3
      ELSE 1
    END AS state
  FROM unnest(
    $1::integer[], $2::integer[], $3::integer[], $4::smallint[], $5::bytea[], $9::bigint[], $10::bigint[],
    $11::bigint[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::text[], $17::smallint[],
    $18::text[], $19::integer[]
  ) AS u (
    lane, priority, max_attempts, encoding, payload, delay_ms, due_at, timeout_ms, retry, job, key, id, workflow, on_failure,
    trace, job_concurrency
  )
  CROSS JOIN clock
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, due_at, timeout_ms, lane, priority, lease, attempt, max_attempts, crashes, state, encoding,
    on_failure, retry, job, workflow, key, payload, trace
  )
  SELECT
    coalesce(item.id, windlass.task_id(clock.now, item.seq)), CASE WHEN item.state IN (1, 4) THEN item.seq END, item.due_at,
    item.timeout_ms, item.lane, item.priority, 0, 0, item.max_attempts, 0, item.state, item.encoding, item.on_failure,
    item.retry, item.job, item.workflow, item.key, item.payload, item.trace
  FROM item CROSS JOIN clock
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key)
  SELECT DISTINCT CASE WHEN item.workflow IS NULL THEN 0 ELSE 1 END::smallint, coalesce(item.workflow, item.job)
  FROM item
  WHERE item.workflow IS NOT NULL OR item.job IS NOT NULL
), limited AS (
  INSERT INTO windlass.gate_todo (kind, key, concurrency)
  SELECT DISTINCT ON (item.job) 4::smallint, item.job, item.job_concurrency
  FROM item
  WHERE item.job_concurrency IS NOT NULL
  ORDER BY item.job, item.seq
), rung AS MATERIALIZED (
  {ring: channel = $6, if = $7 AND EXISTS (SELECT 1 FROM item WHERE item.state = 1), now = (SELECT now FROM clock), lanes = $1, listener = $8}
), woken AS MATERIALIZED (
  SELECT NULL
)
SELECT
  coalesce(item.id, windlass.task_id(clock.now, item.seq)), (SELECT count(*) FROM rung) + (SELECT count(*) FROM woken), item.due_at, item.state,
  item.job IS NOT NULL AND coalesce((SELECT j.state = 2 FROM windlass.job AS j WHERE j.name = item.job), false)
FROM item CROSS JOIN clock
