-- Holds a schedule that still waits for a tick. $1 name, $2 tick.
SELECT s.name FROM windlass.schedule AS s WHERE s.name = $1 AND s.next_at = $2 AND NOT s.paused FOR UPDATE
