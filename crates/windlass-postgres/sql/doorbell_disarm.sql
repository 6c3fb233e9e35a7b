-- A busy worker need not be rung. $1 listener.
UPDATE windlass.doorbell SET armed_until = 0 WHERE listener = $1
