-- Keeps the tasks of `gone` in the history, and starts the time of their keys; `clock` has the time. With history off
-- only awaited tasks are kept, and those that :keep names. :worker, :state, :result_encoding, :ran, :error, :output, :ttl.
kept AS (
  INSERT INTO windlass.history (
    id, started_at, ended_at, worker, timeout_ms, lane, priority, lease, attempt, max_attempts, state, encoding,
    output_encoding, ran, job, workflow, key, progress, error, log, output, payload
  )
  SELECT
    g.id, g.claimed_at, (SELECT now FROM clock), :worker, g.timeout_ms, g.lane, g.priority, g.lease, g.attempt,
    g.max_attempts, :state, g.encoding, :result_encoding, :ran, g.job, g.workflow, g.key, g.progress, :error, g.log,
    :output, g.payload
  FROM gone AS g
  WHERE :keep OR EXISTS (SELECT 1 FROM windlass.awaited AS a WHERE a.task = g.id)
), {remember_keys: start = (SELECT now FROM clock), ttl = :ttl}
