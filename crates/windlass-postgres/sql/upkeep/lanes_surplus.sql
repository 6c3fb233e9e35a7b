-- How many lanes are in use, and whether any lane is retired. Index: lane_in_use, lane_idle.
SELECT
  (SELECT count(*) FROM windlass.lane AS l WHERE NOT l.retired),
  EXISTS (SELECT 1 FROM windlass.lane AS l WHERE l.idle_since IS NOT NULL AND l.retired)
