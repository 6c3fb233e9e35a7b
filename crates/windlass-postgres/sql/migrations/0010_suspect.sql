-- Suspects of crashes come in groups that halve, and only from the second crash on; one with a job stands aside while its group waits. Rows
-- with one crash are in the ready line like any others. A group is a number, negative if it has one member only. The indexes task_suspect and
-- task_running_suspect stay for workers of the version before; they are small.
ALTER TABLE windlass.task
  ADD COLUMN suspect bigint,
  ADD COLUMN aside boolean NOT NULL DEFAULT false;
DROP INDEX windlass.task_ready;
CREATE INDEX task_ready ON windlass.task (lane, priority DESC, ready_seq) WHERE state = 1 AND crashes < 2;
CREATE INDEX task_suspect_waiting ON windlass.task (lane) WHERE crashes >= 2 AND (state = 1 OR (state = 3 AND aside));
CREATE INDEX task_suspect_running ON windlass.task (worker) WHERE state = 2 AND crashes >= 2;
