-- Says how things stand for a claim, and takes nothing: whether the worker may claim, whether anything is ready for it,
-- what keeps ready tasks from it, when a task is due next, how many lanes are in use and the sum of their numbers, whether
-- admission must look at a gate.
-- $1 worker, $2 claim number, $3–$6 ranges as in take.sql, $7 crashes of a last chance, $8 ms for which that runs alone
-- for each crash.
-- Indexes: primary keys of worker, lease_epoch, lane, paused_queue and freed, task_ready, task_suspect_running,
-- task_suspect_waiting, task_due, gate_todo_at, lane_in_use.
WITH verdict AS MATERIALIZED (
  SELECT
    windlass.now_ms() AS now,
    EXISTS (
      SELECT 1 FROM windlass.worker AS w WHERE w.id = $1 AND {live_worker: claim_no = $2}
    ) AS is_live,
    {suspect_alone: worker = $1, last_chance = $7, isolation_ms = $8::bigint} AS is_isolated,
    {suspects_wait: lanes = $3} AS has_suspects
), range AS MATERIALIZED (
  SELECT
    r.lane, r.high, r.low, r.after,
    EXISTS (
      SELECT 1 FROM windlass.lane AS l JOIN windlass.paused_queue AS p ON p.queue = l.queue WHERE l.id = r.lane
    ) AS is_paused
  FROM unnest($3::integer[], $4::integer[], $5::integer[], $6::bigint[]) AS r (lane, high, low, after)
)
SELECT
  v.now, v.is_live, v.is_isolated, v.has_suspects,
  EXISTS (
    SELECT 1
    FROM range AS r
    WHERE NOT r.is_paused AND NOT v.is_isolated
      -- Range by range: without OFFSET the server may read the whole ready line instead.
      AND EXISTS (
        SELECT 1
        FROM windlass.task AS t
        WHERE t.state = 1 AND t.crashes < 2 AND t.lane = r.lane AND t.priority BETWEEN r.low AND r.high
          AND t.ready_seq > r.after
        OFFSET 0
      )
  ) AS has_ready,
  v.has_suspects OR EXISTS (
    SELECT 1
    FROM range AS r
    WHERE (r.is_paused OR v.is_isolated)
      AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes < 2 AND t.lane = r.lane OFFSET 0)
  ) AS is_blocked,
  least(
    (SELECT t.due_at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1),
    (SELECT g.at FROM windlass.gate_todo AS g WHERE g.at > 0 ORDER BY g.at LIMIT 1)
  ) AS next_due,
  in_use.n, in_use.sum,
  EXISTS (SELECT 1 FROM windlass.gate_todo AS g WHERE g.at <= v.now) OR EXISTS (SELECT 1 FROM windlass.freed) AS has_todo
FROM verdict AS v
-- Not the count alone: it stays the same when one lane is retired and another one is made.
CROSS JOIN (
  SELECT count(*) AS n, coalesce(sum(l.id), 0)::bigint AS sum FROM windlass.lane AS l WHERE NOT l.retired
) AS in_use
