-- Whether a worker may take tasks of these lanes now. Hazard: a sweep that takes away the tasks of a dead worker could
-- miss those of a claim that commits late. So the claim locks the worker's row until it commits, and the sweep waits for
-- that lock before it looks for tasks.
-- :worker, :claim_no, :lanes, :last_chance (crashes), :isolation_ms for each crash, :locked (what to do if the row is
-- locked).
-- Index: primary key of worker.
EXISTS (
    SELECT 1 FROM windlass.worker AS w WHERE w.id = :worker AND {live_worker: claim_no = :claim_no}
    FOR KEY SHARE :locked
  )
  AND NOT {suspect_alone: worker = :worker, last_chance = :last_chance, isolation_ms = :isolation_ms}
  AND NOT {suspects_wait: lanes = :lanes}
