-- Takes ready tasks as leases of one worker: the highest priority first, then in the order in which they became ready,
-- over all lanes. Takes nothing while the worker may not claim; why, look.sql says.
-- $1 worker, $2 claim number, $3 how many; $4–$7 ranges to read, as arrays: lane, highest and lowest priority,
-- ready_seq after which it is read, the best range of a lane first; $8 crashes of a last chance, $9 ms for which that
-- runs alone for each crash, $10 lanes in which suspects that wait keep everything else back, $11 whether the ranges
-- are of several lanes.
-- Indexes: primary keys of worker, lease_epoch, lane and paused_queue, task_ready, task_suspect_waiting,
-- task_suspect_running; the update goes by ctid.
WITH open_range AS MATERIALIZED (
  SELECT r.place, r.lane, r.high, r.low, r.after
  FROM unnest($4::integer[], $5::integer[], $6::integer[], $7::bigint[]) WITH ORDINALITY AS r (lane, high, low, after, place)
  -- Asked once, before anything is read: it depends on no task.
  WHERE {may_claim: worker = $1, claim_no = $2, lanes = $10, last_chance = $8, isolation_ms = $9::bigint, locked = }
    AND NOT EXISTS (
      SELECT 1 FROM windlass.lane AS l JOIN windlass.paused_queue AS p ON p.queue = l.queue WHERE l.id = r.lane
    )
), share AS MATERIALIZED (
  -- One lane: its ranges one after the other, until there is enough.
  SELECT o.place, o.lane, o.high, o.low, o.after, $3::bigint AS n FROM open_range AS o WHERE NOT $11
  UNION ALL
  -- Several lanes: how many of the first $3 of all lie in each range. Read without a lock.
  SELECT o.place, o.lane, o.high, o.low, o.after, count(*) AS n
  FROM (
    SELECT o.place, o.lane, o.high, o.low, o.after
    FROM open_range AS o
    CROSS JOIN LATERAL (
      SELECT task.priority, task.ready_seq
      FROM windlass.task
      WHERE task.state = 1 AND task.crashes < 2 AND task.lane = o.lane AND task.priority BETWEEN o.low AND o.high
        AND task.ready_seq > o.after
      ORDER BY task.priority DESC, task.ready_seq
      LIMIT $3
    ) AS t
    WHERE $11
    ORDER BY t.priority DESC, t.ready_seq
    LIMIT $3
  ) AS o
  GROUP BY 1, 2, 3, 4, 5
  ORDER BY 1
), line AS MATERIALIZED (
  -- All row locations in one row: the update reads this row once, instead of a list that is copied for each use.
  SELECT array_agg(t.place) AS places, array_agg(t.job) FILTER (WHERE t.paced) AS started
  FROM (
    SELECT t.place, t.job, t.paced
    FROM share
    CROSS JOIN LATERAL (
      SELECT task.ctid AS place, task.job, task.paced
      FROM windlass.task
      WHERE task.state = 1 AND task.crashes < 2 AND task.lane = share.lane
        AND task.priority BETWEEN share.low AND share.high AND task.ready_seq > share.after
      ORDER BY task.priority DESC, task.ready_seq
      LIMIT share.n
      FOR UPDATE SKIP LOCKED
    ) AS t
    LIMIT $3
  ) AS t
), started AS (
  -- The job has a delay: a task of it starts, and admission must record that.
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 2::smallint, unnest(line.started) FROM line
)
-- At the top: in a WITH its rows would be kept twice, each with its payload.
UPDATE windlass.task
SET state = 2, lease = {new_lease},
  attempt = attempt + 1, worker = $1, claim_no = $2, claimed_at = (SELECT windlass.now_ms())
WHERE ctid = ANY ((SELECT places FROM line)::tid[]) AND state = 1
RETURNING {claimed_task}
