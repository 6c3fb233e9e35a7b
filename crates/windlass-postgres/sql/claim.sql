-- Takes ready tasks of one line after another (stretches of one lane, highest priority first), for a worker whose lease
-- is in force, while the server knows the epoch of leases. Its connection does not wait for the disk. Takes nothing while suspects want to be looked at first, or while one on its last chance runs alone.
-- $1 worker, $2 claim number, $3 how many, $4–$7 stretches: lane, highest and lowest priority, place after which it is
-- read; $8 crashes of a last chance, $9 how long it runs alone for each crash, $10 whether ready suspects are left aside.
-- Indexes: primary keys of worker, lease_epoch and lane, task_ready, task_suspect_waiting, task_suspect_running; the update goes by ctid.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), holder AS MATERIALIZED (
  SELECT w.id
  FROM windlass.worker AS w
  WHERE w.id = $1 AND w.ended_at IS NULL AND w.min_claim_no <= $2 AND w.expires_at > (SELECT now FROM clock)
    AND EXISTS (SELECT 1 FROM windlass.lease_epoch AS e WHERE e.id = 1)
  FOR KEY SHARE
), mine AS MATERIALIZED (
  SELECT t.crashes, t.suspect, t.claimed_at
  FROM windlass.task AS t
  WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = $1
), gate AS MATERIALIZED (
  SELECT
    EXISTS (SELECT 1 FROM holder) AS live,
    EXISTS (
      SELECT 1 FROM mine WHERE crashes >= $8 AND suspect < 0 AND claimed_at > (SELECT now FROM clock) - $9::bigint * crashes
    ) AS isolated,
    NOT $10
      AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.crashes >= 2 AND (t.state = 1 OR (t.state = 3 AND t.aside)) AND t.lane = ANY($4)) AS suspects
), stretch AS MATERIALIZED (
  SELECT s.lane, s.high, s.low, s.after
  FROM unnest($4::integer[], $5::integer[], $6::integer[], $7::bigint[]) WITH ORDINALITY AS s (lane, high, low, after, place)
  JOIN windlass.lane AS l ON l.id = s.lane
  CROSS JOIN gate
  WHERE gate.live AND NOT gate.isolated AND NOT gate.suspects
    AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue)
  ORDER BY s.place
), line AS MATERIALIZED (
  SELECT t.place
  FROM stretch
  CROSS JOIN LATERAL (
    SELECT task.ctid AS place
    FROM windlass.task
    WHERE task.state = 1 AND task.crashes < 2 AND task.lane = stretch.lane
      AND task.priority BETWEEN stretch.low AND stretch.high AND task.ready_seq > stretch.after
    ORDER BY task.priority DESC, task.ready_seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
  ) AS t
  LIMIT $3
), taken AS (
  UPDATE windlass.task
  SET state = 2, lease = greatest(lease + 1, (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1)),
    attempt = attempt + 1, worker = $1, claim_no = $2,
    claimed_at = (SELECT now FROM clock)
  WHERE ctid = ANY (ARRAY(SELECT place FROM line)) AND state = 1
  RETURNING id, lease, attempt, max_attempts, crashes, lane, priority, ready_seq, encoding, payload, timeout_ms,
    retry, job, workflow, paced, trace, ctid AS place
), started AS (
  -- The start of a task whose job has a delay is to be noticed.
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 2::smallint, taken.job FROM taken WHERE taken.paced
  RETURNING kind
), short AS MATERIALIZED (
  SELECT (SELECT count(*) FROM taken) < $3 AS is_short
), rest AS MATERIALIZED (
  -- Most of it is looked at only if the claim brought less than it asked for.
  SELECT
    CASE WHEN short.is_short THEN
      EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.crashes >= 2 AND (t.state = 1 OR (t.state = 3 AND t.aside)) AND t.lane = ANY($4))
      OR EXISTS (
        SELECT 1
        FROM windlass.lane AS l CROSS JOIN gate
        WHERE l.id = ANY($4)
          AND (gate.isolated OR EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue))
          -- Lane by lane: without OFFSET the server may read the whole line of every lane instead.
          AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes < 2 AND t.lane = l.id OFFSET 0)
      )
    END AS is_blocked,
    least(
      (SELECT t.due_at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1),
      (SELECT g.at FROM windlass.gate_todo AS g WHERE g.at > 0 ORDER BY g.at LIMIT 1)
    ) AS next_due,
    CASE WHEN short.is_short THEN (SELECT count(*) FROM windlass.lane) END AS lanes,
    EXISTS (SELECT 1 FROM windlass.gate_todo AS g WHERE g.at <= (SELECT now FROM clock))
      OR EXISTS (SELECT 1 FROM windlass.freed) AS has_todo,
    EXISTS (SELECT 1 FROM started) AS has_started
  FROM short
)
-- The head once, then the tasks: what every row repeats is made and sent as often as there are rows.
SELECT
  clock.now, gate.live, gate.isolated, gate.suspects, rest.is_blocked, rest.next_due, rest.lanes, rest.has_todo,
  rest.has_started,
  NULL AS id, NULL AS lease, NULL AS attempt, NULL AS max_attempts, NULL AS crashes, NULL AS lane, NULL AS priority,
  NULL AS ready_seq, NULL AS encoding, NULL AS payload, NULL AS timeout_ms, NULL AS retry, NULL AS job, NULL AS workflow,
  NULL AS trace, NULL AS place
FROM clock CROSS JOIN gate CROSS JOIN rest
UNION ALL
SELECT
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  t.id, t.lease, t.attempt, t.max_attempts, t.crashes, t.lane, t.priority, t.ready_seq, t.encoding, t.payload,
  t.timeout_ms, t.retry, t.job, t.workflow, t.trace, t.place
FROM taken AS t
