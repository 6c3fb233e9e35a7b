-- Disarms the doorbell of a busy worker. $1 listener.
UPDATE windlass.doorbell SET armed_until = windlass.now_ms() WHERE listener = $1
