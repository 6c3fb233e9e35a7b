-- Broken: the first of the ready tasks are held again instead of the last. Breaks the order of a job. Noticed by jobs::a_task_that_outranks_a_ready_one_takes_its_place
WITH pick AS MATERIALIZED (
  SELECT t.id
  FROM unnest($1::text[], $2::bigint[]) AS u (name, n)
  CROSS JOIN LATERAL (
    SELECT t.id
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 1
    ORDER BY t.priority DESC, t.ready_seq
    LIMIT u.n
  ) AS t
  ORDER BY t.id
)
UPDATE windlass.task AS t
SET state = 3, ready_seq = NULL, paced = NULL
FROM pick
WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 1
RETURNING t.job
