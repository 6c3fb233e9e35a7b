-- Locks a worker's row against claims that are under way: these have committed before, or will see what is decided
-- next. Index: primary key. $1 worker.
SELECT w.id FROM windlass.worker AS w WHERE w.id = $1 FOR UPDATE
