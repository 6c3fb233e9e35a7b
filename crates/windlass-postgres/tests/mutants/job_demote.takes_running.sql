-- Broken: a task that was claimed meanwhile is taken from its worker and held. Breaks ONE-LEASE. Noticed by own::a_task_that_was_claimed_meanwhile_is_not_taken_back
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
WHERE t.id = ANY (ARRAY[pick.id])
RETURNING t.job
