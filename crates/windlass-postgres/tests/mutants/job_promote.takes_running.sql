-- Broken: a task is made ready whether it is held or runs. Breaks ONE-LEASE. Noticed by jobs::a_limit_that_rises_lets_more_through_at_once
WITH pick AS MATERIALIZED (
  SELECT t.place, t.id, t.lane, u.has_delay
  FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS u (name, n, has_delay)
  CROSS JOIN LATERAL (
    SELECT t.ctid AS place, t.id, t.lane
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state IN (2, 3) AND NOT t.parked AND NOT t.aside
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
FROM (SELECT item.* FROM item ORDER BY item.id) AS item
WHERE t.ctid = item.place AND t.state + 0 IN (2, 3)
RETURNING t.job, t.lane, t.state
