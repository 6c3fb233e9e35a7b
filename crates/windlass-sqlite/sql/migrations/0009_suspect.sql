-- Suspects of crashes come in groups that halve, and only from the second crash on; one with a job stands aside while its group waits. Rows
-- with one crash are in the ready line like any others. A group is a number, negative if it has one member only.
ALTER TABLE task ADD COLUMN suspect INTEGER;
ALTER TABLE task ADD COLUMN aside INTEGER NOT NULL DEFAULT 0;
DROP INDEX task_ready;
-- With the crashes, so that the head of a line is read from the index alone.
CREATE INDEX task_ready ON task (lane, priority DESC, ready_seq, crashes) WHERE state = 1 AND crashes < 2;
DROP INDEX task_suspect;
CREATE INDEX task_suspect ON task (lane) WHERE crashes >= 2 AND ended_at IS NULL;
