-- Whether a worker lives in another process than the store: then it may outlive the process that has the store.
ALTER TABLE worker ADD COLUMN remote INTEGER NOT NULL DEFAULT 0;
