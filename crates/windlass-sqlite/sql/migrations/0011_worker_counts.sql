-- What a worker had done at its last renewal, by queue, for operators who look at a worker that has ended.
ALTER TABLE worker ADD COLUMN counts TEXT NOT NULL DEFAULT '';
