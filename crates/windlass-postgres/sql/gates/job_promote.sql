-- Makes the best held tasks of jobs ready, so many of each. A task among them whose lane no live worker serves is
-- parked instead. The numbers in the line are drawn job by job. $1 locked jobs, in order, $2 how many of each, $3
-- whether each has a delay. Index: task_job, primary key of lane; the update goes by ctid.
WITH pick AS MATERIALIZED (
  SELECT t.place, t.id, t.lane, u.has_delay
  FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS u (name, n, has_delay)
  CROSS JOIN LATERAL (
    SELECT t.ctid AS place, t.id, t.lane
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 3 AND NOT t.parked AND NOT t.aside
    ORDER BY t.priority DESC, t.id
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
-- In the order of the tasks, in which every transaction locks them.
FROM (SELECT item.* FROM item ORDER BY item.id) AS item
WHERE t.ctid = item.place AND t.state + 0 = 3
RETURNING t.job, t.lane, t.state
