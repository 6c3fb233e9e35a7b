-- Takes one ready task that somebody has named, where claim_quick.sql would take it, with still less to set up.
-- $1 worker, $2 claim number, $3 task, $4 lanes.
-- Indexes: primary keys of task, worker, lease_epoch and paused_queue, task_suspect_waiting, task_suspect_running; the update goes by ctid.
UPDATE windlass.task
SET state = 2, lease = greatest(lease + 1, (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1)),
    attempt = attempt + 1, worker = $1, claim_no = $2, claimed_at = windlass.now_ms()
WHERE ctid = (
    SELECT task.ctid
    FROM windlass.task
    WHERE task.id = $3 AND task.state = 1 AND task.crashes < 2 AND task.paced IS NOT TRUE AND task.lane = ANY($4)
      AND EXISTS (
        SELECT 1
        FROM windlass.worker AS w
        WHERE w.id = $1 AND w.ended_at IS NULL AND w.min_claim_no <= $2 AND w.expires_at > windlass.now_ms()
          AND EXISTS (SELECT 1 FROM windlass.lease_epoch AS e WHERE e.id = 1)
        FOR KEY SHARE
      )
      AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = $1)
      AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.crashes >= 2 AND (t.state = 1 OR (t.state = 3 AND t.aside)) AND t.lane = ANY($4))
      AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue)
    FOR UPDATE SKIP LOCKED
  )
  AND state = 1
RETURNING id, lease, attempt, max_attempts, crashes, lane, priority, ready_seq, encoding, payload, timeout_ms, retry, job,
  workflow, trace, ctid, claimed_at
