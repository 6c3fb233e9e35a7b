-- Holds a schedule that still waits for a tick that has come, and says what it said. $1 name, $2 tick, $3 what it said.
SELECT s.name
FROM windlass.schedule AS s
WHERE s.name = $1 AND s.next_at = $2 AND s.next_at <= windlass.now_ms() AND s.spec = $3 AND NOT s.paused
FOR UPDATE
