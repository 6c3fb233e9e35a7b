-- What admission control of a worker last said, for people who look at a worker that has ended.
ALTER TABLE worker ADD COLUMN memory_usage REAL NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN factor REAL NOT NULL DEFAULT 1;
ALTER TABLE worker ADD COLUMN reason TEXT NOT NULL DEFAULT '';
