-- A busy worker need not be rung. $1 listener.
UPDATE windlass.doorbell SET armed_until = windlass.now_ms() WHERE listener = $1
