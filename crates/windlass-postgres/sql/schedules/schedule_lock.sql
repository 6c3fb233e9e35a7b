-- Locks a schedule if this tick is due and was not fired, its text has not changed and it is not paused. $1 name, $2
-- tick, $3 text.
SELECT s.name
FROM windlass.schedule AS s
WHERE s.name = $1 AND s.next_at = $2 AND s.next_at <= windlass.now_ms() AND s.spec = $3 AND NOT s.paused
FOR UPDATE
