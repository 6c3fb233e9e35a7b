-- Figures that the leader counted. Index: primary key of depth.
SELECT d.lane, d.state, d.n FROM windlass.depth AS d ORDER BY d.lane, d.state
