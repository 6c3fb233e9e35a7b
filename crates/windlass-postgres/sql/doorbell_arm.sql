-- An idle worker wants to be rung. In a transaction of its own: whoever enqueues after it sees it. $1 listener, $2 lanes,
-- $3 for how long.
INSERT INTO windlass.doorbell AS d (listener, armed_until, lanes)
VALUES ($1, windlass.now_ms() + $3, $2)
ON CONFLICT (listener) DO UPDATE SET armed_until = excluded.armed_until, lanes = excluded.lanes
