-- Whether a suspect on its last chance has the worker to itself. :worker, :last_chance (crashes), :isolation_ms for
-- each crash.
-- Index: task_suspect_running.
EXISTS (
    SELECT 1
    FROM windlass.task AS s
    WHERE s.state = 2 AND s.crashes >= 2 AND s.worker = :worker AND s.crashes >= :last_chance AND s.suspect < 0
      AND s.claimed_at > windlass.now_ms() - :isolation_ms * s.crashes
  )
