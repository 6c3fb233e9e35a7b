-- Broken: held tasks are made ready by age alone. Breaks the order of a job. Noticed by jobs::a_jobs_next_task_has_the_highest_priority_then_age
WITH pick AS MATERIALIZED (
  SELECT t.place, t.id, t.lane, u.has_delay
  FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS u (name, n, has_delay)
  CROSS JOIN LATERAL (
    SELECT t.ctid AS place, t.id, t.lane
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 3 AND NOT t.parked AND NOT t.aside
    ORDER BY t.id
    LIMIT u.n
  ) AS t
), live AS MATERIALIZED (
  SELECT l.id
  FROM windlass.lane AS l
  WHERE l.id = ANY (ARRAY(SELECT DISTINCT pick.lane FROM pick)) AND windlass.is_live(l.queue, l.kind)
), item AS MATERIALIZED (
  SELECT p.place, p.id, p.has_delay, p.is_live, CASE WHEN p.is_live THEN nextval('windlass.seq') END AS ready_seq
  FROM (SELECT pick.*, pick.lane = ANY (ARRAY(SELECT live.id FROM live)) AS is_live FROM pick) AS p
)
UPDATE windlass.task AS t
SET
  state = CASE WHEN item.is_live THEN 1 ELSE 3 END,
  ready_seq = item.ready_seq,
  parked = NOT item.is_live,
  paced = CASE WHEN item.is_live AND item.has_delay THEN true END
FROM (SELECT item.* FROM item ORDER BY item.id) AS item
WHERE t.ctid = item.place AND t.state + 0 = 3
RETURNING t.job, t.lane, t.state
