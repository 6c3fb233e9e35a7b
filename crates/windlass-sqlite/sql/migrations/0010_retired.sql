-- A lane that stood empty is retired: it does not count among those in use, until its next task.
ALTER TABLE lane ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;
