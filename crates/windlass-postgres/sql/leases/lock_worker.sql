-- A worker's row, held against claims that are under way: they have committed, or will find what is decided next.
-- Index: primary key. $1 worker.
SELECT w.id FROM windlass.worker AS w WHERE w.id = $1 FOR UPDATE
