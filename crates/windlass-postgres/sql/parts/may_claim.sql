-- Whether a worker may take tasks of these lanes now. Its row is held until the claim commits: a sweep that takes the
-- tasks of a dead worker away waits for that, and misses none that commits late.
-- :worker, :claim_no, :lanes, :last_chance (crashes), :isolation_ms for each crash, :locked (what to do if the row is
-- locked).
-- Index: primary key of worker.
EXISTS (
    SELECT 1 FROM windlass.worker AS w WHERE w.id = :worker AND {live_worker: claim_no = :claim_no}
    FOR KEY SHARE :locked
  )
  AND NOT {suspect_alone: worker = :worker, last_chance = :last_chance, isolation_ms = :isolation_ms}
  AND NOT {suspects_wait: lanes = :lanes}
