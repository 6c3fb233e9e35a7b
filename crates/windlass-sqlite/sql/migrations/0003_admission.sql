-- The last report of a worker's admission control, for operators who look at a worker that has ended.
ALTER TABLE worker ADD COLUMN memory_usage REAL NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN factor REAL NOT NULL DEFAULT 1;
ALTER TABLE worker ADD COLUMN reason TEXT NOT NULL DEFAULT '';
