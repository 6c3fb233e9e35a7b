-- What admission control of a worker says with every renewal. Columns with a constant default rewrite no row.
ALTER TABLE windlass.worker
  ADD COLUMN memory_usage double precision NOT NULL DEFAULT 0,
  ADD COLUMN factor double precision NOT NULL DEFAULT 1,
  ADD COLUMN reason text NOT NULL DEFAULT '';
