-- Begins an epoch of leases if the server has forgotten which one is in force, or if the one in force is used up. Its
-- commit waits for the disk: no number of it is given out before. Answers the epoch in force and whether it was begun
-- here. $1 the epoch that is used up, if any, $2 the numbers of an epoch. Indexes: primary keys of meta and
-- lease_epoch.
WITH begun AS (
  UPDATE windlass.meta AS m SET value = m.value + $2
  WHERE m.name = 'lease_epoch'
    AND (m.value = $1 OR NOT EXISTS (SELECT 1 FROM windlass.lease_epoch AS e WHERE e.id = 1))
  RETURNING m.value::integer AS first_lease
), noted AS (
  -- Two processes that begin an epoch at once make two; the later one is in force.
  INSERT INTO windlass.lease_epoch AS e (id, first_lease) SELECT 1, b.first_lease FROM begun AS b
  ON CONFLICT (id) DO UPDATE SET first_lease = greatest(e.first_lease, excluded.first_lease)
  RETURNING e.first_lease
)
SELECT
  coalesce((SELECT n.first_lease FROM noted AS n), (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1)),
  EXISTS (SELECT 1 FROM noted)
