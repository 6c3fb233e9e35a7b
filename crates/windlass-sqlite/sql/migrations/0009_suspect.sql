-- Suspects of crashes form groups that halve, and only from the second crash on. A suspect with a job is set
-- aside while its group waits. Rows with one crash are in the ready line like any others. A group is a
-- number, negative if it has only one member.
ALTER TABLE task ADD COLUMN suspect INTEGER;
ALTER TABLE task ADD COLUMN aside INTEGER NOT NULL DEFAULT 0;
DROP INDEX task_ready;
-- Includes the crashes, so that the index alone can answer a read of the head of a line.
CREATE INDEX task_ready ON task (lane, priority DESC, ready_seq, crashes) WHERE state = 1 AND crashes < 2;
DROP INDEX task_suspect;
CREATE INDEX task_suspect ON task (lane) WHERE crashes >= 2 AND ended_at IS NULL;
