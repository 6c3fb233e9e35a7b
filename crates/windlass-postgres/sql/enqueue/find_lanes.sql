-- How many lanes are in use, how many were ever made, and those of these names. $1 queues, $2 kinds. Index: lane_in_use,
-- unique (queue, kind).
SELECT
  (SELECT count(*) FROM windlass.lane AS l WHERE NOT l.retired),
  (SELECT count(*) FROM windlass.lane),
  ARRAY(
    SELECT l.id
    FROM unnest($1::text[], $2::text[]) AS u (queue, kind) JOIN windlass.lane AS l ON l.queue = u.queue AND l.kind = u.kind
  )
