-- Numbers appended steps in the order in which they arrived. Never by id, because a transaction may draw its ids early
-- and commit late. $1 locked workflows. Index: task_step; the update goes by the primary key.
WITH added AS MATERIALIZED (
  SELECT t.id
  FROM unnest($1::text[]) AS u (name)
  CROSS JOIN LATERAL (
    SELECT t.id, t.ready_seq
    FROM windlass.task AS t
    WHERE t.workflow = u.name AND t.state <> 6 AND t.step IS NULL
  ) AS t
  ORDER BY t.ready_seq
), item AS MATERIALIZED (
  SELECT added.id, nextval('windlass.seq') AS step FROM added
)
UPDATE windlass.task AS t
SET step = item.step
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state + 0 = 4 AND t.step IS NULL
