-- An idle worker may offer to take the next task that comes alone: whoever adds one leases it to the worker in the same commit and tells it
-- what the task is, on a channel whose name only those know who may read this table. Its connection holds the advisory lock `presence` for as
-- long as it listens.
ALTER TABLE windlass.doorbell
  ADD COLUMN worker bigint,
  ADD COLUMN claim_no bigint,
  ADD COLUMN offered integer[],
  ADD COLUMN whisper text,
  ADD COLUMN presence bigint;
