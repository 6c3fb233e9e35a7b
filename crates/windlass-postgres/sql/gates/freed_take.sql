-- Takes the places that must be passed on, the oldest first. Other admissions skip the rows that this one takes. $1 how
-- many batches at most. Index: primary key.
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
