-- Broken: a ready task that a claim has locked stays ready. Breaks LIMIT. Noticed by own::a_limit_that_falls_waits_for_a_claim_under_way
WITH pick AS MATERIALIZED (
  SELECT t.id
  FROM unnest($1::text[], $2::bigint[]) AS u (name, n)
  CROSS JOIN LATERAL (
    SELECT t.id
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 1
    ORDER BY t.priority, t.ready_seq DESC
    LIMIT u.n
    FOR UPDATE SKIP LOCKED
  ) AS t
  ORDER BY t.id
)
UPDATE windlass.task AS t
SET state = 3, ready_seq = NULL, paced = NULL
FROM pick
WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 1
RETURNING t.job
