-- Whether a worker runs in another process than the store. Such a worker may outlive the store's process.
ALTER TABLE worker ADD COLUMN remote INTEGER NOT NULL DEFAULT 0;
