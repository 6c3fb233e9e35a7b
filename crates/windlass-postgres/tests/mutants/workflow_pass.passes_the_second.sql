-- Broken: the step after the head gets its turn too. Breaks WF-ORDER. Noticed by workflows::steps_run_one_at_a_time_in_the_order_of_append
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), head AS MATERIALIZED (
  SELECT t.id, CASE WHEN t.due_at > clock.now THEN 0 WHEN t.job IS NOT NULL THEN 3 ELSE 1 END AS state
  FROM unnest($1::text[]) WITH ORDINALITY AS u (name, place)
  JOIN windlass.workflow AS w ON w.name = ANY (ARRAY[u.name])
  CROSS JOIN LATERAL (
    SELECT t.id, t.state, t.job, t.due_at
    FROM windlass.task AS t
    WHERE t.workflow = u.name AND t.state <> 6 AND t.step IS NOT NULL
    ORDER BY t.step
    LIMIT 2
  ) AS t
  CROSS JOIN clock
  WHERE w.blocked_by IS NULL AND t.state = 4
  ORDER BY u.place
), item AS MATERIALIZED (
  SELECT head.id, head.state, CASE WHEN head.state = 1 THEN nextval('windlass.seq') END AS ready_seq FROM head
)
UPDATE windlass.task AS t
SET state = item.state, ready_seq = item.ready_seq, due_at = CASE WHEN item.state = 0 THEN t.due_at END
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state + 0 = 4
RETURNING t.lane, t.state, t.job, t.due_at
