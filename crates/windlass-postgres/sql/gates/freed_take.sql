-- Takes places that are to be passed on, the oldest first; whoever else admits skips them. $1 how many batches at most.
-- Index: primary key.
WITH oldest AS MATERIALIZED (
  SELECT f.ctid AS place
  FROM windlass.freed AS f
  ORDER BY f.id
  LIMIT $1
  FOR UPDATE SKIP LOCKED
)
DELETE FROM windlass.freed AS f
WHERE f.ctid = ANY (ARRAY(SELECT oldest.place FROM oldest))
RETURNING f.jobs, f.places
