-- Arms the doorbell of an idle worker. In a transaction of its own: an enqueue that begins after it sees it. Every
-- enqueue reads all doorbells, so those of processes that have been away for a day are deleted. $1 listener, $2 lanes,
-- $3 for how long.
WITH gone AS (
  DELETE FROM windlass.doorbell AS d
  WHERE d.listener IN (
    SELECT old.listener
    FROM windlass.doorbell AS old
    WHERE old.armed_until < windlass.now_ms() - 86400000 AND old.listener <> $1
    ORDER BY old.armed_until
    LIMIT 100
    FOR UPDATE SKIP LOCKED
  )
)
INSERT INTO windlass.doorbell AS d (listener, armed_until, lanes)
VALUES ($1, windlass.now_ms() + $3, $2)
ON CONFLICT (listener) DO UPDATE SET armed_until = excluded.armed_until, lanes = excluded.lanes
