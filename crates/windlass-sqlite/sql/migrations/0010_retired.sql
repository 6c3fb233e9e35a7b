-- A lane that stood empty is retired: it does not count among those in use, until its next task. The number
-- is the last task id that was given out by then: no task of the lane has a higher one.
ALTER TABLE lane ADD COLUMN retired INTEGER;
