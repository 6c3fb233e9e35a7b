-- Brings retired lanes back into use. $1 lanes. Index: lane_idle.
SELECT windlass.wake_lanes($1)
