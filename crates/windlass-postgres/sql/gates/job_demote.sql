-- Holds ready tasks of jobs again, so many of each, the last ones of the order first. It waits for claims that are
-- under way: to skip their rows would let more run than the limit allows. $1 locked jobs, in order, $2 how many of
-- each. Index: task_job; the update goes by the primary key.
WITH pick AS MATERIALIZED (
  SELECT t.id
  FROM unnest($1::text[], $2::bigint[]) AS u (name, n)
  CROSS JOIN LATERAL (
    SELECT t.id
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 1
    ORDER BY t.priority, t.ready_seq DESC
    LIMIT u.n
  ) AS t
  ORDER BY t.id
)
UPDATE windlass.task AS t
SET state = 3, ready_seq = NULL, paced = NULL
FROM pick
WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 1
RETURNING t.job
