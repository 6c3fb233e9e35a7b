-- Broken: steps that are appended at the same time are ordered by their ids. Breaks WF-ORDER. Noticed by own::steps_keep_the_order_of_append_when_the_clock_goes_back
WITH added AS MATERIALIZED (
  SELECT t.id
  FROM unnest($1::text[]) AS u (name)
  CROSS JOIN LATERAL (
    SELECT t.id, t.ready_seq
    FROM windlass.task AS t
    WHERE t.workflow = u.name AND t.state <> 6 AND t.step IS NULL
  ) AS t
  ORDER BY t.id
), item AS MATERIALIZED (
  SELECT added.id, nextval('windlass.seq') AS step FROM added
)
UPDATE windlass.task AS t
SET step = item.step
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state + 0 = 4 AND t.step IS NULL
