-- Brings lanes back into use that a look found empty: a task enters them in the same commit. Nearly always there are
-- none. :lanes. Index: lane_idle.
CASE WHEN EXISTS (SELECT 1 FROM windlass.lane AS i WHERE i.id = ANY (:lanes) AND i.idle_since IS NOT NULL)
  THEN windlass.wake_lanes(:lanes)
END
